module httpgo

go 1.19

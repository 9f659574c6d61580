module adversarial

go 1.19

// SPDX-License-Identifier: Apache-2.0
// proxy.js PORT tick|timer: passes /UPSTREAM-PORT/... on to that port, in the tick in which the
// request came or after a timer; a line per request: client port, ns from headers to the last byte.
const http = require("http");
const [port, when] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true });

function pass(req, res) {
  const up = { host: "127.0.0.1", port: req.url.split("/")[1], path: req.url, agent };
  http.get(up, (answer) => {
    res.writeHead(answer.statusCode, { "Content-Length": answer.headers["content-length"] });
    answer.pipe(res);
  });
}

http.createServer((req, res) => {
  const begin = process.hrtime.bigint();
  const peer = req.socket.remotePort;
  res.on("finish", () => process.stdout.write(`${peer} ${process.hrtime.bigint() - begin}\n`));
  if (when === "timer") setTimeout(pass, 2, req, res);
  else pass(req, res);
}).listen(Number(port), "127.0.0.1");

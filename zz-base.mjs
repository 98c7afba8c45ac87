import { createServer } from "node:http"
createServer((q, r) => { r.writeHead(200, { "content-type": "application/json" }); r.end('{"status":"ok"}') }).listen(8098, "127.0.0.1", () => console.log("READY"))
process.on("SIGUSR2", () => { const c = process.cpuUsage(); console.log("CPU " + (c.user + c.system)) })
process.on("SIGTERM", () => process.exit(0))

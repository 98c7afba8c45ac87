import { spawn } from "node:child_process"; import http from "node:http"; import { readFileSync } from "node:fs"
const child = spawn(process.execPath, ["zz-base.mjs", process.argv[2] ?? "off"], { stdio: ["ignore", "pipe", "inherit"] })
let buf = ""; const waiters = []
child.stdout.on("data", d => { buf += d; for (const w of [...waiters]) w() })
const waitFor = re => new Promise(r => { const f = () => { const m = re.exec(buf); if (m) { buf = buf.slice(m.index + m[0].length); waiters.splice(waiters.indexOf(f), 1); r(m) } }; waiters.push(f); f() })
await waitFor(/READY/)
const keys = JSON.parse(readFileSync("/tmp/svc-zz/dev-keys.json", "utf8"))
const agent = new http.Agent({ keepAlive: true, maxSockets: 32 })
const one = (method, path, headers, body) => new Promise((res, rej) => { const r = http.request({ agent, host: "127.0.0.1", port: 8098, method, path, headers }, m => { let t = ""; m.on("data", d => t += d); m.on("end", () => res([m.statusCode, t])) }); r.on("error", rej); r.end(body) })
const cpu = async () => { child.kill("SIGUSR2"); return Number((await waitFor(/CPU (\d+)/))[1]) }
const pk = { "x-svc-key": keys.development.publishableKey }, json = { "content-type": "application/json" }
const run = async (name, n, ...args) => { for (const [label, count] of [["warm", 2000], [name, n]]) {
  const before = await cpu(), t = performance.now(); let left = count, status
  await Promise.all(Array.from({ length: 32 }, async () => { while (left-- > 0) status = (await one(...args))[0] }))
  const used = await cpu() - before
  if (label === name) console.log(name.padEnd(34), status, (used / count).toFixed(1), "us CPU/req", Math.round(count / (performance.now() - t) * 1000), "req/s") } }
await run("healthz", 8000, "GET", "/healthz", {})
child.kill("SIGTERM"); process.exit(0)

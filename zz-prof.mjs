import { readdirSync, readFileSync } from "node:fs"
const f = "/tmp/prof/" + readdirSync("/tmp/prof")[0]
const p = JSON.parse(readFileSync(f))
const self = new Map(), byId = new Map(p.nodes.map(n => [n.id, n]))
p.samples.forEach((id, i) => { const n = byId.get(id); const k = n.callFrame.functionName + " " + n.callFrame.url.split("/").slice(-3).join("/") + ":" + n.callFrame.lineNumber; self.set(k, (self.get(k) ?? 0) + p.timeDeltas[i]) })
const total = p.timeDeltas.reduce((a, b) => a + b, 0)
for (const [k, v] of [...self].sort((a, b) => b[1] - a[1]).slice(0, 45)) console.log((v / total * 100).toFixed(1).padStart(5), k)

/**
 * A process of a cluster that shares its port. It reports each connection that it accepts. On a message it
 * starts a probe of its accept queue, or reports the wait that the probe has measured.
 */
import { createServer } from "node:net"
import { Clock, Effect } from "effect"
import { monotonicMillis } from "#entities/monotonic"
import { AcceptProbe } from "#server/http/accept-delay"

const server = createServer((socket) => {
  socket.on("error", () => undefined)
  process.send?.("accepted")
})
const probe = new AcceptProbe(server, monotonicMillis(Effect.runSync(Clock.Clock)))

process.on("message", (message) => {
  if (message === "start") probe.start()
  else process.send?.(probe.millis)
})
process.on("disconnect", () => process.exit(0))
server.listen({ host: "127.0.0.1", port: 0 })

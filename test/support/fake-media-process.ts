/**
 * Program of a media process without media. Its offers are its process id. The name of a session says what
 * the program does: `heavy-<MiB>` reports that much memory, and `sends-<packets>` that many packets.
 * `connects-<session>` reports that the other session is connected, and `stuck` stops the process.
 */
import type { MediaReport, MediaRequest } from "#server/features/voice/media-messages"

const report = (message: MediaReport): void => void process.send?.(message)

process.on("message", (request: MediaRequest) => {
  if (request.t === "bind") report({ t: "ready" })
  if (request.t !== "open") return
  const { call, environmentId, session } = request
  const connecting = /^connects-(.+)$/.exec(session)?.[1]
  if (connecting !== undefined) report({ t: "connected", session: connecting })
  const packets = /^sends-(\d+)$/.exec(session)?.[1]
  if (packets !== undefined) {
    report({ t: "load", forwards: { [environmentId]: Number(packets) }, residentBytes: 0 })
  }
  report({
    t: "offered",
    call,
    session,
    gen: 1,
    sdp: `${process.pid}`,
    publishMid: "mic",
    slots: []
  })
  const mebibytes = /^heavy-(\d+)$/.exec(session)?.[1]
  if (mebibytes !== undefined) {
    report({ t: "load", forwards: {}, residentBytes: Number(mebibytes) * 2 ** 20 })
  }
  if (session === "stuck") process.kill(process.pid, "SIGSTOP")
})
process.on("disconnect", () => process.exit(0))

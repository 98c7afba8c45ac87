/**
 * Voice benchmark: the media process with a call of synthetic speakers and listeners, on one machine, by
 * the driver of the service and by werift. Measures its CPU, the packets that arrive, joins a second and
 * memory a join. See README.md.
 */
import { spawnSync } from "node:child_process"
import { readFile } from "node:fs/promises"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { MediaWorker, type WorkerCall } from "#server/features/voice/media-worker"
import { peerProgram } from "./servers/peer-packages.ts"
import { VoicePeer } from "../support/voice-peer.ts"

const ticksPerSecond = 100
const packetsPerSecond = 50

const { values } = parseArgs({
  options: {
    people: { type: "string", default: "100" },
    speakers: { type: "string", default: "8" },
    seconds: { type: "string", default: "8" },
    joins: { type: "string", default: "0" },
    driver: { type: "string" }
  }
})
/** Both drivers fit in 100 s. The second one cannot forward for a call of 100. */
const driverMillis = 48_000
const defaults = { "node-datachannel": [], werift: ["--people", "33"] }
if (values.driver === undefined) {
  for (const [driver, own] of Object.entries(defaults)) {
    const file = fileURLToPath(import.meta.url)
    const args = [file, ...own, ...process.argv.slice(2), "--driver", driver]
    const options = values.joins === "0" ? { timeout: driverMillis } : {}
    const { error } = spawnSync(process.execPath, args, { stdio: "inherit", ...options })
    if (error !== undefined) console.error(`${driver} did not end: ${error.message}`)
  }
  process.exit(0)
}
const people = Number(values.people)
const speakers = Number(values.speakers)
const seconds = Number(values.seconds)
const joins = Number(values.joins)

const program = values.driver === "werift" ? peerProgram("voice-werift.mjs") : undefined
const worker = new MediaWorker(
  {
    onLog: (level, message) => console.error(level, message),
    onConnected: () => undefined,
    onEnd: () => undefined
  },
  program
)
worker.bind({ port: 0, publicIp: "127.0.0.1" })
await Effect.runPromise(worker.ready)
const pid = worker.pid ?? 0

/** User and system time of the media process, in seconds. */
const cpuSeconds = async (): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8")
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

const residentBytes = async (): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8")
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024
}

const peers = new Map<string, VoicePeer>()
const connected = new Map<string, () => void>()

const call: WorkerCall = worker.start(
  {
    offered: ({ gen, publishMid, sdp, session }) => {
      const peer = peers.get(session)
      if (peer === undefined) return
      void peer.answer(sdp, publishMid).then(async (answer) => {
        const candidates = await Effect.runPromise(call.answer(session, gen, answer))
        for (const { candidate, sdpMid } of candidates) {
          peer.connection.addRemoteCandidate(candidate, sdpMid)
        }
        if (peer.connection.state() === "connected") connected.get(session)?.()
      })
    },
    speaking: () => undefined,
    failed: (session) => {
      if (peers.has(session)) console.error(`${session} failed`)
    },
    lost: () => console.error("The media process has ended")
  },
  "env_bench"
)

const join = (session: string) =>
  new Promise<VoicePeer>((resolve) => {
    const peer = new VoicePeer(session)
    peers.set(session, peer)
    connected.set(session, () => resolve(peer))
    peer.connection.onStateChange((state) => {
      if (state === "connected") resolve(peer)
    })
    call.open(session)
  })

const leave = (session: string): void => {
  call.close(session)
  peers.get(session)?.close()
  peers.delete(session)
}

/** Joins under way at the same time. */
const atOnce = 20

/** Joins and leaves many times. */
const measureJoins = async () => {
  const before = await residentBytes()
  const from = performance.now()
  for (let done = 0; done < joins; done += atOnce) {
    const names = Array.from({ length: atOnce }, (_, i) => `join-${done + i}`)
    await Promise.all(names.map(join))
    for (const name of names) leave(name)
  }
  const elapsed = (performance.now() - from) / 1000
  await sleep(1000)
  const grown = (await residentBytes()) - before
  console.log(
    `${values.driver}: ${joins} joins, ${(joins / elapsed).toFixed(0)} a second, ` +
      `${(grown / joins / 1024).toFixed(1)} KiB each, ${(before / 2 ** 20).toFixed(0)} MiB before`
  )
}

const measureCall = async () => {
  const all: Array<VoicePeer> = []
  while (all.length < people) {
    const size = Math.min(atOnce, people - all.length)
    const names = Array.from({ length: size }, (_, i) => `person-${all.length + i}`)
    all.push(...(await Promise.all(names.map(join))))
  }
  all.slice(0, speakers).forEach((peer, i) => {
    call.setMicrophone(`person-${i}`, true)
    peer.speak(20)
  })
  await sleep(2000)
  const received = () => all.reduce((sum, peer) => sum + peer.total(), 0)
  const sent = () => all.reduce((sum, peer) => sum + peer.sent, 0)
  const [cpu, heard, spoken, from] = [await cpuSeconds(), received(), sent(), performance.now()]
  await sleep(seconds * 1000)
  const elapsed = (performance.now() - from) / 1000
  const [cpuUsed, packets, speech] = [
    (await cpuSeconds()) - cpu,
    received() - heard,
    sent() - spoken
  ]
  const expected = speech * (people - 1)
  console.log(
    `${values.driver}: ${people} people, ${speakers} speakers: ${(packets / elapsed).toFixed(0)} packets/s arrive, ` +
      `${((1 - packets / expected) * 100).toFixed(2)} % lost, ` +
      `${((cpuUsed / elapsed) * 100).toFixed(1)} % of a core, ` +
      `${((cpuUsed / packets) * 1e6).toFixed(1)} us a packet, ` +
      `${(speech / elapsed / speakers).toFixed(1)} of ${packetsPerSecond} packets/s per speaker, ` +
      `${((await residentBytes()) / 2 ** 20).toFixed(0)} MiB`
  )
}

if (joins > 0) await measureJoins()
if (people > 0) await measureCall()
worker.stop()
process.exit(0)

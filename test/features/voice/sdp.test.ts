/** Answers that no browser sends: the media process refuses them, and goes on. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { MediaOffer } from "#entities/voice-session/media"
import { MediaWorker } from "#server/features/voice/media-worker"
import { Chance } from "../../simulation/random.ts"
import { eventually, VoicePeer } from "../../support/voice-peer.ts"

const seed = 22
const answers = 60

/** A process that is stopped with the scope, and what it reports. */
const startWorker = Effect.acquireRelease(
  Effect.sync(() => {
    const logs: Array<string> = []
    const worker = new MediaWorker({
      onLog: (level, message) => logs.push(`${level} ${message}`),
      onConnected: () => undefined,
      onEnd: () => undefined
    })
    return { worker: worker.bind({ port: 0, publicIp: "127.0.0.1" }), logs }
  }),
  ({ worker }) => Effect.sync(() => worker.stop())
)

/** A line as nobody writes it. */
const broken = (line: string, chance: Chance): ReadonlyArray<string> => {
  const at = chance.integer(0, line.length)
  switch (chance.integer(0, 7)) {
    case 0:
      return []
    case 1:
      return [line, line]
    case 2:
      return [line.slice(0, at)]
    case 3:
      return [line.replace(/\d+/, "99999999999999999999")]
    case 4:
      return [line.replace(/\d+/, "-1")]
    case 5:
      return [
        `${line.slice(0, at)}${String.fromCodePoint(chance.integer(0, 0xff_ff))}${line.slice(at)}`
      ]
    case 6:
      return [line, `a=${"x".repeat(chance.integer(0, 4000))}`]
    default:
      return [line.replace(/[a-z]+/, "")]
  }
}

const mutated = (sdp: string, chance: Chance): string => {
  const lines = sdp.split("\r\n")
  for (let changes = chance.integer(1, 4); changes > 0; changes--) {
    const at = chance.integer(0, lines.length - 1)
    lines.splice(at, 1, ...broken(lines[at] ?? "", chance))
  }
  return lines.join("\r\n")
}

it.live("the media process survives answers with broken lines, and serves a good one", () =>
  Effect.gen(function* () {
    const chance = new Chance(seed, 1_000_000)
    const { logs, worker } = yield* startWorker
    yield* worker.ready
    const offers = new Map<string, MediaOffer>()
    let isLost = false
    const call = worker.start(
      {
        offered: (offer) => offers.set(offer.session, offer),
        speaking: () => undefined,
        failed: () => undefined,
        lost: () => {
          isLost = true
        }
      },
      "env_a"
    )
    const join = Effect.fnUntraced(function* (session: string, change: (sdp: string) => string) {
      call.open(session)
      yield* eventually(() => offers.has(session) || isLost, `${session} gets an offer`)
      const offer = offers.get(session)
      assert.isFalse(isLost, logs.join("\n"))
      if (offer === undefined) return yield* Effect.die("no offer")
      const peer = yield* Effect.acquireRelease(
        Effect.sync(() => new VoicePeer(session)),
        (held) => Effect.sync(() => held.close())
      )
      const sdp = change(yield* Effect.promise(() => peer.answer(offer.sdp, offer.publishMid)))
      const outcome = yield* Effect.result(call.answer(session, offer.gen, sdp))
      return { outcome, peer }
    })
    let refused = 0
    for (let i = 0; i < answers; i++) {
      const session = `broken-${i}`
      const { outcome } = yield* Effect.scoped(join(session, (sdp) => mutated(sdp, chance)))
      if (outcome._tag === "Failure") refused += 1
      call.close(session)
    }
    assert.isAbove(refused, 0)
    const { outcome, peer } = yield* join("good", (sdp) => sdp)
    if (outcome._tag === "Failure") return assert.fail(outcome.failure.message)
    for (const { candidate, sdpMid } of outcome.success) {
      peer.connection.addRemoteCandidate(candidate, sdpMid)
    }
    yield* eventually(() => peer.connection.state() === "connected", "a good answer connects")
  }).pipe(Effect.scoped)
)

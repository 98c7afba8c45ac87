/** The media processes of a runner: when one is replaced, and when one is ended. */
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { type MediaCall, VoiceMedia } from "#entities/voice-session/media"
import { mediaLimits } from "#server/features/voice/media-limits"
import { mediaWorkers } from "#server/features/voice/media-workers"
import { Settings } from "#server/platform/settings/settings"
import { mediaProcesses } from "../../support/voice-peer.ts"

const program = fileURLToPath(new URL("../../support/fake-media-process.ts", import.meta.url))

const Workers = mediaWorkers(program).pipe(
  Layer.provide(Settings.layer),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: {} })))
)

/** A call, with the process of each session that it has opened. */
const startCallOf = Effect.fnUntraced(function* (environmentId: string) {
  const media = yield* VoiceMedia
  const lost = yield* Deferred.make<void>()
  const waiting = new Map<string, (pid: string) => void>()
  const call: MediaCall = yield* media.start(
    {
      offered: ({ sdp, session }) => waiting.get(session)?.(sdp),
      speaking: () => undefined,
      failed: () => undefined,
      lost: () => Deferred.doneUnsafe(lost, Effect.void)
    },
    environmentId
  )
  /** Opens a session; returns the process. */
  const open = (session: string) =>
    Effect.callback<string>((resume) => {
      waiting.set(session, (pid) => resume(Effect.succeed(pid)))
      call.open(session)
    })
  /** Reserves joins until there is no place left; returns how many. */
  const flood = (name: string) => {
    let joins = 0
    while (call.reserve(`${name}-${joins}`)) joins += 1
    return joins
  }
  return { call, open, flood, lost: Deferred.await(lost) }
})

const startCall = startCallOf("env_a")

/** Lets the clock run until the call is lost. */
const untilLost = ({ lost }: Effect.Success<typeof startCall>) =>
  Effect.gen(function* () {
    const waiting = yield* Effect.forkChild(lost)
    yield* TestClock.adjust("1 second").pipe(
      Effect.andThen(Effect.yieldNow),
      Effect.repeat({ until: () => waiting.pollUnsafe() !== undefined })
    )
    yield* Fiber.join(waiting)
  })

describe("the media processes of a runner", () => {
  it.live("replaces one that has served many joins, as soon as it is empty", () =>
    Effect.gen(function* () {
      const first = yield* startCall
      const pid = yield* first.open("s0")
      for (let joins = 1; joins < mediaLimits.joinsPerProcess; joins++) first.call.open(`s${joins}`)
      const second = yield* startCall
      assert.strictEqual(yield* second.open("t0"), pid, "it is not empty")
      first.call.end()
      second.call.end()
      const third = yield* startCall
      const replacement = yield* third.open("u0")
      assert.notStrictEqual(replacement, pid)
      third.call.end()
      const fourth = yield* startCall
      assert.strictEqual(yield* fourth.open("v0"), replacement, "it has served few")
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.live("replaces one that has grown, as soon as it is empty", () =>
    Effect.gen(function* () {
      const mebibytes = mediaLimits.processReplacedBytes / 2 ** 20
      const first = yield* startCall
      const pid = yield* first.open(`heavy-${mebibytes}`)
      first.call.end()
      const next = Effect.gen(function* () {
        const { call, open } = yield* startCall
        const other = yield* open("s0")
        call.end()
        return other
      })
      yield* next.pipe(
        Effect.repeat({
          until: (other) => other !== pid,
          schedule: Schedule.spaced(20),
          times: 500
        }),
        Effect.map((other) => assert.notStrictEqual(other, pid))
      )
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.effect("keeps a spare one, which serves when one dies", () =>
    Effect.gen(function* () {
      const before = yield* mediaProcesses
      const first = yield* startCall
      const pid = Number(yield* first.open("s0"))
      const others = (known: ReadonlyArray<number>) =>
        Effect.map(mediaProcesses, (all) =>
          all.filter((each) => !before.includes(each) && !known.includes(each))
        )
      assert.isEmpty(yield* others([pid]), "a spare one comes after the first call")
      yield* TestClock.adjust("1 second")
      const [spare = yield* Effect.die("no spare process")] = yield* others([pid])
      process.kill(pid, "SIGKILL")
      yield* first.lost
      const second = yield* startCall
      assert.strictEqual(Number(yield* second.open("t0")), spare)
      yield* TestClock.adjust("1 second")
      assert.lengthOf(yield* others([pid, spare]), 1, "another spare one")
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.effect(
    "refuses a call of an environment that fills a media process, and takes one of another",
    () =>
      Effect.gen(function* () {
        const { open } = yield* startCallOf("env_a")
        yield* open(`sends-${mediaLimits.forwardsPerSecond}`)
        const refused = yield* Effect.flip(startCallOf("env_a"))
        assert.strictEqual(refused._tag, "voice_unavailable")
        const other = yield* startCallOf("env_b")
        yield* other.open("t0")
      }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.effect("leaves places for joins of other environments, however many one of them makes", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* startCallOf("env_a"), yield* startCallOf("env_b")]
      const joins = one.flood("one")
      assert.isAtLeast(joins, 100, "a whole call joins at once")
      assert.isBelow(joins, mediaLimits.joinsUnderWay.permits)
      assert.isAtLeast(other.flood("other"), 10)
      const again = yield* startCallOf("env_a")
      assert.strictEqual(again.flood("again"), 0, "the share is of all calls together")
      for (let i = 0; i < joins; i++) one.call.close(`one-${i}`)
      assert.strictEqual(one.flood("early"), 0, "a place is held for a second")
      yield* TestClock.adjust("2 seconds")
      assert.isAtLeast(one.flood("later"), 100)
      one.call.end()
      yield* TestClock.adjust("2 seconds")
      assert.isAtLeast(again.flood("last"), 100, "the joins of a call end with it")
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.live("keeps room for answers of other environments, also after one has sent too many", () =>
    Effect.gen(function* () {
      const one = yield* startCallOf("env_a")
      const again = yield* startCallOf("env_a")
      const other = yield* startCallOf("env_b")
      yield* one.open("s0")
      /** Sends answers, to which this process never replies; returns those that wait. */
      const answer = Effect.fnUntraced(function* ({ call }: typeof one, count: number) {
        const sent = yield* Effect.forEach(Array.from({ length: count }), () =>
          Effect.forkChild(call.answer("s0", 1, "sdp"), { startImmediately: true })
        )
        return sent.filter((fiber) => fiber.pollUnsafe() === undefined)
      })
      const { permits } = mediaLimits.waitingAnswers
      const waiting = yield* answer(one, permits)
      assert.isAtLeast(waiting.length, permits / 2)
      assert.isBelow(waiting.length, permits)
      assert.lengthOf(yield* answer(again, 1), 0, "the share is of all calls together")
      assert.lengthOf(yield* answer(other, 10), 10)
      yield* Fiber.interruptAll(waiting)
      assert.lengthOf(yield* answer(again, 10), 10, "places are free again")
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  it.effect("frees the place of a member that has connected", () =>
    Effect.gen(function* () {
      const { call, flood, open } = yield* startCall
      const joins = flood("slow")
      yield* TestClock.adjust("5 seconds")
      assert.isFalse(call.reserve("late"), "nobody has connected")
      yield* open("connects-slow-0")
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(call.reserve("late"))
      assert.isAbove(joins, 1)
    }).pipe(Effect.provide(Workers), Effect.scoped)
  )

  for (const [session, why] of [
    ["stuck", "does not answer"],
    [`heavy-${mediaLimits.processMaxBytes / 2 ** 20}`, "holds too much memory"]
  ] as const) {
    it.effect(`ends a media process that ${why}, and starts another`, () =>
      Effect.gen(function* () {
        const first = yield* startCall
        const pid = yield* first.open(session)
        yield* untilLost(first)
        const second = yield* startCall
        assert.notStrictEqual(yield* second.open("s0"), pid)
      }).pipe(Effect.provide(Workers), Effect.scoped)
    )
  }
})

/** Joins of a call whose media takes a while to start, while the channel changes. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue } from "effect"
import { TestRunner } from "effect/cluster"
import type { ChannelOutput } from "#entities/channel/messages"
import { LocalChannels } from "#entities/channel/entity"
import { channelId } from "#entities/channel/protocol"
import { VoiceCalls } from "#entities/voice-session/calls"
import { VoiceSessionLive } from "#entities/voice-session/entity"
import { type MediaCall, VoiceMedia } from "#entities/voice-session/media"
import { VoiceSession } from "#entities/voice-session/protocol"
import { at } from "#testing/players"
import { ChannelHarness } from "../../support/channel-harness.ts"

/** A managed channel with a call through the media server, whose media starts on demand. */
const slowCall = Effect.gen(function* () {
  const isAsked = yield* Deferred.make<void>()
  const isStarted = yield* Deferred.make<void>()
  const open = new Set<number>()
  /** How many joins the media takes. */
  const places = { left: 10 }
  let starts = 0
  const startMedia = Effect.gen(function* () {
    starts += 1
    const number = starts
    yield* Deferred.succeed(isAsked, undefined)
    yield* Deferred.await(isStarted)
    open.add(number)
    const media: MediaCall = {
      reserve: () => places.left-- > 0,
      open: () => undefined,
      answer: () => Effect.succeed([]),
      setMicrophone: () => undefined,
      hint: () => undefined,
      close: () => undefined,
      end: () => void open.delete(number)
    }
    return media
  })
  const Media = Layer.succeed(VoiceMedia, { start: () => startMedia })
  const harness = new ChannelHarness({ voice: { mode: "sfu", relayOnly: false } })
  const { environmentId, name } = harness.state.options
  for (const id of ["ann", "ben"]) harness.join(id)
  // Its gateways read no events of calls.
  for (const node of ["n1", "n2"] as const) harness.unwatch(node)
  const services = yield* Layer.build(
    VoiceSessionLive.pipe(
      Layer.provideMerge(VoiceCalls.layer.pipe(Layer.provide(Media))),
      Layer.provideMerge(LocalChannels.layer),
      Layer.provideMerge(TestRunner.layer)
    )
  )
  return yield* Effect.gen(function* () {
    const id = channelId(environmentId, name)
    const { actors } = yield* LocalChannels
    actors.set(id, harness.actor)
    const calls = yield* VoiceCalls
    const entity = (yield* VoiceSession.client)(id)
    const join = (playerId: string) => {
      const connectionId = harness.gateways.n1.members.get(playerId)?.connectionId ?? ""
      return Effect.match(entity.Join({ playerId, connectionId, relayOnly: false }), {
        onFailure: ({ _tag }) => _tag,
        onSuccess: ({ mode }) => mode
      })
    }
    /** Joins, with a change of the world while the media starts. */
    const joinDuring = Effect.fnUntraced(function* (playerId: string, change: () => void) {
      const joining = yield* Effect.forkChild(join(playerId), { startImmediately: true })
      yield* Deferred.await(isAsked)
      change()
      yield* Deferred.succeed(isStarted, undefined)
      return yield* Fiber.join(joining)
    })
    const inCall = () => Array.from(calls.of(harness.actor)?.state.members.keys() ?? [])
    return { harness, calls, open, places, join, joinDuring, inCall, environmentId }
  }).pipe(Effect.provideContext(services))
})

const withCall = (
  use: (call: Effect.Success<typeof slowCall>) => Effect.Effect<void>
): Effect.Effect<void> => Effect.scoped(Effect.flatMap(slowCall, use))

describe("a join while the media starts", () => {
  it.live(
    "refuses the join of a player who is banned while the media starts, and ends the unused media",
    () =>
      withCall(({ harness, inCall, join, joinDuring, open }) =>
        Effect.gen(function* () {
          const ban = () => void harness.actor.moderate({ op: "ban", target: "ann" })
          assert.strictEqual(yield* joinDuring("ann", ban), "not_in_channel")
          assert.deepStrictEqual(inCall(), [])
          assert.strictEqual(open.size, 0, "the media has ended")
          assert.strictEqual(yield* join("ben"), "sfu")
          assert.deepStrictEqual(inCall(), ["ben"])
        })
      )
  )

  it.live("makes no call when the channel's voice mode changes while the media starts", () =>
    withCall(({ harness, inCall, join, joinDuring, open }) =>
      Effect.gen(function* () {
        const outcome = yield* joinDuring("ann", () => {
          const changes = { maxMembers: 8, voice: { mode: "p2p" } } as const
          assert.strictEqual(harness.outcome(harness.actor.put(changes)), "ok")
        })
        assert.strictEqual(outcome, "voice_unavailable")
        assert.strictEqual(open.size, 0, "the media has ended")
        assert.strictEqual(yield* join("ann"), "p2p")
        assert.deepStrictEqual(inCall(), ["ann"])
        const sfu = { voice: { mode: "sfu" } } as const
        assert.strictEqual(harness.outcome(harness.actor.put(sfu)), "voice_in_use")
      })
    )
  )

  it.live("fails joins to a call while the operator suspends voice, until it is resumed", () =>
    withCall(({ calls, environmentId, inCall, join, joinDuring, open }) =>
      Effect.gen(function* () {
        const suspend = () => calls.endAll(environmentId, "suspended")
        assert.strictEqual(yield* joinDuring("ann", suspend), "voice_unavailable")
        assert.strictEqual(yield* join("ann"), "voice_unavailable")
        assert.deepStrictEqual([inCall(), open.size], [[], 0])
        calls.resume(environmentId)
        assert.strictEqual(yield* join("ann"), "sfu")
      })
    )
  )

  it.live(
    "fails a join to a call while too many joins are under way, and makes no call for it",
    () =>
      withCall(({ inCall, join, joinDuring, open, places }) =>
        Effect.gen(function* () {
          const noPlace = () => void (places.left = 0)
          assert.strictEqual(yield* joinDuring("ann", noPlace), "voice_unavailable")
          assert.deepStrictEqual([inCall(), open.size], [[], 0])
          places.left = 1
          assert.strictEqual(yield* join("ann"), "sfu")
          assert.strictEqual(yield* join("ben"), "voice_unavailable")
          assert.deepStrictEqual(inCall(), ["ann"])
        })
      )
  )

  it.live("holds no call for a channel that closed while the media started", () =>
    withCall(({ calls, harness, joinDuring, open }) =>
      Effect.gen(function* () {
        const close = () => harness.actor.close("deleted")
        assert.strictEqual(yield* joinDuring("ann", close), "not_in_channel")
        assert.isUndefined(calls.of(harness.actor))
        assert.strictEqual(open.size, 0)
      })
    )
  )
})

describe("a node that attaches again to the channel of a call", () => {
  /** Attaches the node of both members again; returns the events of calls that it is sent. */
  const attachAgain = Effect.fnUntraced(function* ({ actor, gateways: { n1 } }: ChannelHarness) {
    const events = yield* Queue.unbounded<readonly [t: unknown, to: unknown]>()
    const present = Array.from(n1.members, ([playerId, member]) => ({
      playerId,
      displayName: playerId,
      openChat: true,
      ...member
    }))
    const send = (outputs: ReadonlyArray<ChannelOutput>) => {
      for (const output of outputs) {
        if (output.kind !== "event") continue
        const event: unknown = JSON.parse(output.frame)
        if (String(at(event, "t")).startsWith("voice"))
          Queue.offerUnsafe(events, [at(event, "t"), output.to])
      }
    }
    actor.attach("n1", { send, end: () => undefined }, actor.epoch, present, 0)
    return events
  })

  it.live("hears that the call has ended, which it has missed", () =>
    withCall(({ calls, environmentId, harness, joinDuring }) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* joinDuring("ann", () => undefined), "sfu")
        calls.endAll(environmentId, "unavailable")
        const events = yield* attachAgain(harness)
        assert.deepStrictEqual(yield* Queue.take(events), ["voice_closed", ["ann", "ben"]])
      })
    )
  )

  it.live("gets the members of the call again, and the end for those who are not in it", () =>
    withCall(({ harness, inCall, joinDuring }) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* joinDuring("ann", () => undefined), "sfu")
        const events = yield* attachAgain(harness)
        assert.deepStrictEqual(yield* Queue.take(events), ["voice_closed", ["ben"]])
        assert.deepStrictEqual(yield* Queue.take(events), ["voice_state", ["ann"]])
        assert.deepStrictEqual(inCall(), ["ann"])
      })
    )
  )

  it.live("hears nothing of calls where there was none", () =>
    withCall(({ harness }) =>
      Effect.gen(function* () {
        const events = yield* attachAgain(harness)
        assert.strictEqual(yield* Queue.size(events), 0)
      })
    )
  )
})

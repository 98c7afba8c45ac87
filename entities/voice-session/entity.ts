/** Behaviour of the voice session entity: finds the channel's actor on this node and its call. */
import { Clock, Effect, type Layer } from "effect"
import { Entity, type Sharding } from "effect/cluster"
import { NotInChannel, VoiceDisabled, VoiceUnavailable } from "#rpc/errors/codes"
import { LocalChannels } from "../channel/entity.ts"
import { memberOf, selfOf } from "../channel/model.ts"
import { sameVoice } from "../channel/options.ts"
import { Lease } from "../lease.ts"
import type { VoiceCall } from "./call.ts"
import { VoiceCalls } from "./calls.ts"
import type { CallCommand } from "./model.ts"
import { VoiceSession } from "./protocol.ts"

interface Connection {
  readonly playerId: string
  readonly connectionId: string
}

const makeFind = Effect.gen(function* () {
  const { entityId } = yield* Entity.CurrentAddress
  const local = yield* LocalChannels
  const lease = yield* Lease
  const calls = yield* VoiceCalls

  /** Returns the channel's actor, if the channel lives here and is alive. */
  const channel = Effect.suspend(() => {
    const actor = local.actors.get(entityId)
    const isActive = actor?.fenced === false && !actor.activation.retired && lease.hasLease()
    return isActive ? Effect.succeed(actor) : Effect.fail(new VoiceUnavailable())
  })

  const call = Effect.flatMap(channel, (actor) => {
    const found = calls.of(actor)
    return found === undefined ? Effect.fail(new NotInChannel()) : Effect.succeed(found)
  })

  /** The call in which the player has this session. */
  const attached = ({
    playerId,
    session
  }: {
    readonly playerId: string
    readonly session: string
  }) =>
    Effect.filterOrFail(
      call,
      ({ state }) => state.members.get(playerId)?.session === session,
      () => new NotInChannel({ message: "Join the voice call first." })
    )
  return { channel, call, attached, calls }
})

const run = (call: VoiceCall, command: CallCommand) => Effect.fromResult(call.run(command))

type Join = Connection & { readonly relayOnly: boolean; readonly session?: string }

const makeJoin = Effect.map(makeFind, ({ calls, channel }) => {
  /** Returns the channel, if the connection is its member's and it has voice. */
  const admitted = Effect.fnUntraced(function* ({ connectionId, playerId }: Join) {
    const actor = yield* channel
    const { state } = actor
    const member = state === undefined ? undefined : memberOf(state, playerId)
    if (state === undefined || member?.attachment?.connectionId !== connectionId) {
      return yield* new NotInChannel()
    }
    const { environmentId, voice } = state.options
    if (voice === null) return yield* new VoiceDisabled()
    if (calls.isSuspended(environmentId)) return yield* new VoiceUnavailable()
    return { actor, state, voice }
  })
  const enter = Effect.fnUntraced(function* (call: VoiceCall, request: Join) {
    // While the media started, the channel may have changed.
    const { actor, state, voice } = yield* admitted(request)
    if (!sameVoice(voice, call.state.voice)) return yield* new VoiceUnavailable()
    const { playerId, relayOnly } = request
    const { canSend: canSpeak } = selfOf(state, playerId, yield* Clock.currentTimeMillis)
    const newSession = calls.newSession(actor)
    yield* run(call, { t: "join", ...request, canSpeak, newSession })
    const session = call.state.members.get(playerId)?.session
    if (session === undefined) return yield* new VoiceUnavailable()
    return { mode: voice.mode, session, relayOnly: voice.relayOnly || relayOnly }
  })
  return Effect.fnUntraced(function* (request: Join) {
    const { actor, voice } = yield* admitted(request)
    const call = yield* calls.ofOrOpen(actor, voice)
    return yield* Effect.onError(enter(call, request), () => Effect.sync(() => call.abandon()))
  })
})

/** The behaviour of voice sessions. The calls live in {@link VoiceCalls}, so an idle entity may end. */
export const VoiceSessionLive: Layer.Layer<
  never,
  never,
  LocalChannels | Sharding.Sharding | VoiceCalls
> = VoiceSession.toLayer(
  Effect.gen(function* () {
    const { attached, call } = yield* makeFind
    const join = yield* makeJoin
    return VoiceSession.of({
      Join: ({ payload }) => join(payload),
      Leave: ({ payload }) =>
        Effect.catchTag(
          Effect.flatMap(call, (found) => run(found, { t: "leave", ...payload })),
          "not_in_channel",
          () => Effect.void
        ),
      Signal: ({ payload }) =>
        Effect.flatMap(call, (found) => {
          const { to } = payload
          const isHere = found.state.members.has(to) && to !== payload.playerId
          return Effect.as(run(found, { t: "signal", ...payload }), isHere ? 1 : 0)
        }),
      Answer: ({ payload }) =>
        Effect.flatMap(attached(payload), ({ media }) =>
          media === undefined
            ? Effect.fail(new VoiceUnavailable())
            : media.answer(payload.session, payload.gen, payload.sdp)
        ),
      Publish: ({ payload }) =>
        Effect.flatMap(attached(payload), (found) =>
          Effect.map(
            run(found, { t: "publish", ...payload }),
            () => found.state.members.get(payload.playerId)?.canSpeak === true
          )
        ),
      Speaking: ({ payload }) =>
        Effect.map(attached(payload), ({ media }) => media?.hint(payload.session, payload.speaking))
    })
  }),
  { concurrency: "unbounded", mailboxCapacity: 10_000 }
)

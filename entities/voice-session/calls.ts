/** The voice calls of this node. A call lives where its channel lives, as long as it has members. */
import { Clock, Context, Effect, Exit, Layer, Random, Scope, Semaphore } from "effect"
import type { ChannelVoice } from "#rpc/channels/frames"
import { VoiceUnavailable } from "#rpc/errors/codes"
import type { VoiceCloseReason } from "#rpc/voice"
import type { ChannelActor } from "../channel/actor.ts"
import { membersOf } from "../channel/model.ts"
import { sameVoice } from "../channel/options.ts"
import { makeTimer } from "../timer.ts"
import { VoiceCall } from "./call.ts"
import { voiceClosed } from "./closed-event.ts"
import { VoiceMedia } from "./media.ts"
import { openCall, retryAfter, sessionId } from "./model.ts"

/** The members of a channel who are connected to a node. */
const membersAt = ({ state }: ChannelActor, node: string): ReadonlyArray<string> =>
  state === undefined
    ? []
    : membersOf(state).flatMap(({ attachment, id }) => (attachment?.node === node ? [id] : []))

/**
 * Brings a node up to date that has attached again to a channel. It may have missed that a player
 * is out of the call: its link notifies those who still believe to be in it.
 */
const catchUp = (
  channel: ChannelActor,
  node: string,
  call: VoiceCall | undefined,
  retryAfterMs: number
): void => {
  const isIn = (id: string): boolean => call?.state.members.has(id) === true
  const players = membersAt(channel, node)
  const to = players.filter((id) => !isIn(id))
  if (to.length > 0) {
    const { name } = channel.state?.options ?? { name: "" }
    const frame = JSON.stringify(voiceClosed(name, "unavailable", retryAfterMs))
    channel.watchers.push(node, { kind: "event", to, listeners: false, frame })
  }
  call?.repeat(players.filter(isIn))
}

/** Builds a call with its timer; both end when the call has no members. */
const makeCall = Effect.fnUntraced(function* (
  channel: ChannelActor,
  voice: ChannelVoice,
  ended: (call: VoiceCall) => void
) {
  const clock = yield* Clock.Clock
  const random = yield* Random.Random
  const now = () => clock.currentTimeMillisUnsafe()
  const wakeAt = yield* makeTimer(() => call.tick())
  const name = channel.state?.options.name ?? ""
  const call: VoiceCall = new VoiceCall(channel, openCall({ channel: name, voice }, now()), {
    now,
    random: () => random.nextDoubleUnsafe(),
    wakeAt,
    ended
  })
  return call
})

export class VoiceCalls extends Context.Service<VoiceCalls>()(
  "entities/voice-session/calls/VoiceCalls",
  {
    make: Effect.gen(function* () {
      const media = yield* VoiceMedia
      const random = yield* Random.Random
      const scope = yield* Effect.scope
      const calls = new Map<ChannelActor, VoiceCall>()
      const runFork = Effect.runForkWith(yield* Effect.context<never>())
      const locks = new WeakMap<ChannelActor, Semaphore.Semaphore>()
      /** Environments whose calls the operator has suspended since this node started. */
      const suspended = new Set<string>()
      let sessions = 0

      const open = Effect.fnUntraced(function* (channel: ChannelActor, voice: ChannelVoice) {
        const { environmentId } = channel
        if (environmentId === undefined) return yield* new VoiceUnavailable()
        const own = yield* Scope.fork(scope)
        const call = yield* Scope.provide(
          makeCall(channel, voice, (ending) => {
            calls.delete(ending.channel)
            runFork(Scope.close(own, Exit.void))
          }),
          own
        )
        calls.set(channel, call)
        channel.returns.register((node) => {
          catchUp(channel, node, calls.get(channel), retryAfter(random.nextDoubleUnsafe()))
        })
        if (voice.mode === "p2p") return call
        // Also when the join is interrupted: no call may stay without media.
        const started = yield* Effect.onExit(media.start(call, environmentId), (exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) call.lost()
          })
        )
        call.useMedia(started)
        return call
      })

      return {
        /** The call of a channel that lives here. */
        of: (channel: ChannelActor) => calls.get(channel),
        /** The calls of this node. */
        actors: calls,
        /** The call of a channel, opened where there is none. */
        ofOrOpen: (channel: ChannelActor, voice: ChannelVoice) => {
          const lock = locks.get(channel) ?? Semaphore.makeUnsafe(1)
          locks.set(channel, lock)
          return lock.withPermits(1)(
            Effect.suspend(() => {
              const call = calls.get(channel)
              if (call !== undefined && sameVoice(call.state.voice, voice)) {
                return Effect.succeed(call)
              }
              // The channel's voice changes only while nobody is in the call.
              call?.abandon()
              return open(channel, voice)
            })
          )
        },
        newSession: ({ epoch }: ChannelActor) => sessionId(epoch, ++sessions),
        isSuspended: (environmentId: string) => suspended.has(environmentId),
        resume: (environmentId: string) => void suspended.delete(environmentId),
        /** Ends all calls of an environment. */
        endAll: (environmentId: string, reason: VoiceCloseReason) => {
          if (reason === "suspended") suspended.add(environmentId)
          for (const call of Array.from(calls.values())) {
            if (call.channel.environmentId === environmentId) call.end(reason)
          }
        }
      }
    })
  }
) {
  static readonly layer = Layer.effect(VoiceCalls, this.make)
}

/** The event by which a call ends for a member, from the runner of the call to the link of the member. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import type { VoiceEvent } from "#rpc/voice"
import { endsVoice, voiceClosed } from "#entities/voice-session/closed-event"
import { type CallCommand, openCall } from "#entities/voice-session/model"
import { decide } from "#entities/voice-session/state"

const join: CallCommand = {
  t: "join",
  playerId: "ann",
  connectionId: "cn_ann",
  relayOnly: false,
  canSpeak: true,
  newSession: "1-1"
}

/** The events of a command to a call with one member. */
const eventsAfter = (command: CallCommand, now: number): ReadonlyArray<VoiceEvent> => {
  const empty = openCall({ channel: "lobby", voice: { mode: "sfu", relayOnly: false } }, 0)
  const { state } = Result.getOrThrow(decide(empty, join, 0))
  const { emissions } = Result.getOrThrow(decide(state, command, now))
  return emissions.flatMap((emission) => (emission.kind === "event" ? [emission.event] : []))
}

describe("the end of a voice call", () => {
  it("recognises voice_closed in the text of every event that the builder makes", () => {
    for (const event of [
      voiceClosed("lobby", "time_limit"),
      voiceClosed("lobby", "suspended"),
      voiceClosed("lobby", "unavailable", 300),
      voiceClosed('"', "unavailable", 0)
    ]) {
      assert.isTrue(endsVoice(JSON.stringify(event)))
    }
  })

  it("recognises voice_closed in every event by which the state machine ends a call", () => {
    const ends: ReadonlyArray<CallCommand> = [
      { t: "tick" },
      { t: "failed", session: "1-1", retryAfterMs: 300 },
      { t: "end", reason: "suspended" },
      { t: "end", reason: "unavailable", retryAfterMs: () => 200 }
    ]
    for (const command of ends) {
      const texts = eventsAfter(command, Number.MAX_SAFE_INTEGER).map((it) => JSON.stringify(it))
      assert.deepStrictEqual(texts.map(endsVoice), [true], command.t)
    }
  })

  it("encodes voice_closed as runners of the release before recognise it", () => {
    assert.strictEqual(
      JSON.stringify(voiceClosed("lobby", "unavailable", 300)),
      '{"t":"voice_closed","channel":"lobby","reason":"unavailable","retryAfterMs":300}'
    )
  })

  it("recognises no other event as voice_closed, also where its data names it", () => {
    const others: ReadonlyArray<VoiceEvent> = [
      { t: "voice_state", channel: "lobby", members: [] },
      { t: "voice_signal", channel: "a", from: "b", kind: "offer", data: { t: "voice_closed" } }
    ]
    for (const event of others) assert.isFalse(endsVoice(JSON.stringify(event)))
  })
})

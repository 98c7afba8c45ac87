/** What the sampler of usage counts for the members of voice calls. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { TestClock } from "effect/testing"
import { EnvironmentId } from "#rpc/ids"
import { ChannelRepository } from "#sql/channels"
import { RoomRepository } from "#sql/rooms"
import { LocalChannels } from "#entities/channel/entity"
import { ThisNode } from "#entities/local-actors"
import { LocalEntities } from "#entities/registry"
import { VoiceCalls } from "#entities/voice-session/calls"
import { Gateway } from "#server/gateway/gateway"
import { Meter, meterMillis } from "#server/platform/meter"
import { Settings } from "#server/platform/settings/settings"
import { UsageSampler } from "#server/telemetry/usage-sampler"
import { ChannelHarness } from "../support/channel-harness.ts"

const ServicesLive = Layer.mergeAll(
  LocalEntities.pipe(
    Layer.provide([Layer.mock(ChannelRepository)({}), Layer.mock(RoomRepository)({})]),
    Layer.provide(ThisNode.layer),
    Layer.provide(SecureRandom.layerWebCrypto)
  ),
  Layer.succeed(Gateway, Object({ sockets: new Set() })),
  Settings.layer.pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { SVC_BILLING: "on" } })))
  )
)

it.effect("counts the seconds of each member of a call, for its environment", () =>
  Effect.gen(function* () {
    const environmentId = EnvironmentId.make(`env_${"0".repeat(26)}`)
    const voice = { mode: "p2p", relayOnly: false } as const
    const harness = new ChannelHarness({ environmentId, maxMembers: 8, voice })
    for (const id of ["ann", "ben", "cat"]) harness.join(id)
    // Its gateways read no events of calls.
    for (const node of ["n1", "n2"] as const) harness.unwatch(node)
    const { actors } = yield* LocalChannels
    actors.set(harness.actor.id, harness.actor)
    const call = yield* (yield* VoiceCalls).ofOrOpen(harness.actor, voice)
    const join = (playerId: string) => {
      const connectionId = harness.gateways.n1.members.get(playerId)?.connectionId ?? ""
      const player = { playerId, connectionId, relayOnly: false, canSpeak: true }
      call.run({ t: "join", ...player, newSession: playerId })
      return connectionId
    }
    const counted = new Map<string, number>()
    const meter = Layer.mock(Meter)({
      add: (id, component, quantity) => {
        const key = `${id} ${component}`
        counted.set(key, (counted.get(key) ?? 0) + quantity)
      }
    })
    yield* Layer.build(UsageSampler.pipe(Layer.provide(meter)))
    const sampled = Effect.as(TestClock.adjust(meterMillis), counted)
    const seconds = meterMillis / 1000
    const key = `${environmentId} voiceSeconds`
    const ann = join("ann")
    assert.strictEqual((yield* sampled).get(key), seconds)
    join("ben")
    assert.strictEqual((yield* sampled).get(key), 3 * seconds)
    call.run({ t: "leave", playerId: "ann", connectionId: ann })
    assert.strictEqual((yield* sampled).get(key), 4 * seconds)
    call.end("time_limit")
    assert.strictEqual((yield* sampled).get(key), 4 * seconds)
    assert.deepStrictEqual(Array.from(counted.keys()), [key])
  }).pipe(Effect.provide(ServicesLive), Effect.scoped)
)

/**
 * The types of the client against the definitions in `rpc/`. The generated text must be current, the
 * compiler compares frames, events and values, and every endpoint and frame needs a typed method.
 */
import { readdirSync, readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import type { RpcGroup } from "effect/rpc"
import type * as agesApi from "#rpc/ages"
import type * as channelsApi from "#rpc/channels/frames"
import type * as oauthApi from "#rpc/oauth/sign-in"
import type * as peersApi from "#rpc/peers"
import type * as playersApi from "#rpc/players"
import { ClientFrames } from "#rpc/realtime"
import type * as realtimeApi from "#rpc/realtime"
import type { PublicRoom } from "#rpc/rooms/api"
import type { RoomEvent, RoomSnapshot } from "#rpc/rooms/events"
import type * as savesApi from "#rpc/saves"
import type * as sessionsApi from "#rpc/sessions"
import type * as statsApi from "#rpc/stats"
import { clientTypesText, playerEndpoints } from "#server/build/client-types"
import type * as wire from "#client/wire"

/** Whether two types accept each other's values. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false

/** `true` if every comparison holds, else the names of those that do not. */
type Differences<Checks> = {
  [Name in keyof Checks]: Checks[Name] extends true ? never : Name
}[keyof Checks]

type Definition<Name> = Extract<RpcGroup.Rpcs<typeof ClientFrames>, { readonly _tag: Name }>

/** A frame without payload has none on the wire. */
type Payload<Name> = Definition<Name>["payloadSchema"]["Encoded"] extends infer P
  ? [P] extends [void]
    ? undefined
    : P
  : never

type FrameChecks = {
  [Name in keyof wire.Frames]: Same<wire.Frames[Name]["payload"], Payload<Name>> extends true
    ? Same<wire.Frames[Name]["data"], Definition<Name>["successSchema"]["Encoded"]>
    : false
}

interface ValueChecks {
  RoomEvent: Same<wire.RoomEvent, typeof RoomEvent.Encoded>
  RoomSnapshot: Same<wire.RoomSnapshot, typeof RoomSnapshot.Encoded>
  PublicRoom: Same<wire.PublicRoom, typeof PublicRoom.Encoded>
  ChannelEvent: Same<wire.ChannelEvent, typeof channelsApi.ChannelEvent.Encoded>
  Moderation: Same<wire.Moderation, typeof channelsApi.Moderation.Encoded>
  IceServers: Same<wire.IceServers, typeof peersApi.IceServers.Encoded>
  Welcome: Same<wire.Welcome, typeof realtimeApi.Welcome.Encoded>
  Warn: Same<wire.Warn, typeof realtimeApi.Warn.Encoded>
  Session: Same<wire.Session, typeof sessionsApi.Session.Encoded>
  Player: Same<wire.Player, typeof playersApi.Player.Encoded>
  SaveItem: Same<wire.SaveItem, typeof savesApi.SaveItem.Encoded>
  AgeProfile: Same<wire.AgeProfile, typeof agesApi.AgeProfile.Encoded>
  StatsReported: Same<wire.StatsReported, typeof statsApi.StatsReported.Encoded>
  NativeRequest: Same<wire.NativeRequest, typeof oauthApi.NativeRequest.Encoded>
}

// The compiler refuses these lines if a type of the client differs from its definition.
const differences: ReadonlyArray<Differences<FrameChecks> | Differences<ValueChecks>> = []
const missingFrames: ReadonlyArray<
  Exclude<RpcGroup.Rpcs<typeof ClientFrames>["_tag"], keyof wire.Frames>
> = []

const folder = new URL("../../src/client/", import.meta.url)

const sources = readdirSync(folder)
  .filter((file) => file.endsWith(".ts") && file !== "wire.ts")
  .map((file) => readFileSync(new URL(file, folder), "utf8"))
  .join("\n")

describe("the types of the client", () => {
  it("derives the client's types from the definitions: run `npm run generate` after a change", () => {
    const committed = readFileSync(new URL("wire.ts", folder), "utf8")
    assert.strictEqual(committed, clientTypesText())
    assert.deepStrictEqual([differences, missingFrames], [[], []])
  })
})

describe("the error codes of the client", () => {
  it("types the errors of players, and none that only developers and operators get", () => {
    const text = clientTypesText()
    const details = text.slice(text.indexOf("export interface ErrorDetails"))
    const hasCode = (code: string) => details.includes(`readonly ${code}:`)
    const codes = {
      ofPlayers: ["room_full", "already_in_room", "version_conflict", "player_banned"],
      ofFunctions: ["function_cpu_exceeded", "functions_suspended"],
      ofOthers: ["too_many_projects", "payments_unavailable", "blobs_missing", "invite_code_used"]
    }
    assert.deepStrictEqual([...codes.ofPlayers, ...codes.ofFunctions].filter(hasCode), [
      ...codes.ofPlayers,
      ...codes.ofFunctions
    ])
    assert.deepStrictEqual(codes.ofOthers.filter(hasCode), [])
  })
})

describe("the methods of the client", () => {
  it("covers every endpoint that a player may call by a method of the client", () => {
    const endpoints = playerEndpoints()
    assert.isAbove(endpoints.length, 30)
    assert.deepStrictEqual(
      endpoints.filter((route) => !sources.includes(`"${route}"`)),
      []
    )
  })

  it("covers every frame by a method of the client", () => {
    const frames = Array.from(ClientFrames.requests.keys())
    assert.isAbove(frames.length, 15)
    assert.deepStrictEqual(
      frames.filter(
        (frame) => !new RegExp(`(?:request|notify|call)\\(\\s*"${frame}"`).test(sources)
      ),
      []
    )
  })
})

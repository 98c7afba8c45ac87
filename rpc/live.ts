/**
 * Live state of an environment, beside the lists of {@link LiveView}. It is one room with its
 * members and state, voice calls, and the runners of the cluster.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import { NotFound, RoomNotFound, Unavailable, wire } from "./errors/codes.ts"
import { feature, group } from "./feature.ts"
import { projectParams, underProject } from "./mounts.ts"
import { AcceptedJsonObject } from "./json.ts"
import { PublicRoom } from "./rooms/api.ts"
import { Timestamp } from "./text.ts"

/** Bounds of the live view, and of the reports of nodes that it shows. */
export const liveLimits = {
  /** Rooms, and channels, that the live view lists. */
  listedMax: 500,
  /** Voice calls that the live view lists. */
  callsMax: 100,
  /**
   * Interval at which a node reports its live rooms and channels. A report is valid for
   * `trustMillis`.
   */
  reportMillis: 2000,
  trustMillis: 10_000
} as const

const LiveMember = Schema.Struct({
  id: Schema.String,
  displayName: Schema.String,
  joinedAt: Timestamp,
  connected: Schema.Boolean,
  /**
   * Time at which the connection was lost; null while it is open, and before a reserved seat is
   * taken.
   */
  absentSince: Schema.NullOr(Timestamp),
  state: AcceptedJsonObject
})

/**
 * Room as of its last snapshot, at most a second old. `version` counts the changes of the state.
 * `runner` is the address of the runner that has the room, in development and with several runners.
 */
export const LiveRoom = Schema.Struct({
  ...PublicRoom.fields,
  metadata: AcceptedJsonObject,
  private: Schema.Boolean,
  locked: Schema.Boolean,
  hostId: Schema.NullOr(Schema.String),
  transport: Schema.Literals(["server", "p2p"]),
  graceSeconds: Schema.Int,
  members: Schema.Array(LiveMember),
  state: AcceptedJsonObject,
  version: Schema.Int,
  runner: Schema.NullOr(Schema.String)
}).annotate({
  identifier: "LiveRoom",
  description: "A room with its members and state, at most a second old."
})
export type LiveRoom = typeof LiveRoom.Type

/** Voice calls, at most 100. `speaks` means that the microphone is open, `away` that the connection is lost. */
export const LiveCalls = Schema.Struct({
  calls: Schema.Array(
    Schema.Struct({
      channel: Schema.String,
      mode: Schema.Literals(["p2p", "sfu"]),
      relayOnly: Schema.Boolean,
      startedAt: Timestamp,
      endsAt: Timestamp,
      members: Schema.Array(
        Schema.Struct({ playerId: Schema.String, speaks: Schema.Boolean, away: Schema.Boolean })
      )
    })
  ),
  truncated: Schema.Boolean
}).annotate({
  identifier: "LiveCalls",
  description: "Voice calls with their members, some seconds old: at most 100."
})
export type LiveCalls = typeof LiveCalls.Type

/**
 * The runners of the whole cluster, some seconds old. `load` is the share of the time in which the event
 * loop was busy, from 0 to 1. A runner without a recent `reportedAt` does not answer.
 */
export const LiveRunners = Schema.Struct({
  runners: Schema.Array(
    Schema.Struct({
      node: Schema.String,
      address: Schema.NullOr(Schema.String),
      release: Schema.String,
      startedAt: Timestamp,
      reportedAt: Timestamp,
      load: Schema.Number,
      memoryBytes: Schema.Int,
      connections: Schema.Int,
      rooms: Schema.Int,
      players: Schema.Int,
      channels: Schema.Int,
      calls: Schema.Int,
      draining: Schema.Boolean
    })
  )
}).annotate({
  identifier: "LiveRunners",
  description: "The runners of the cluster with their load, some seconds old."
})
export type LiveRunners = typeof LiveRunners.Type

/** `/v1/projects/:projectId/environments/:env/realtime/...`: parts of the live view. */
export class LiveApi extends underProject(
  group(
    "live",
    "project",
    "Live",
    "One room with its members and state, voice calls, and the runners."
  ).add(
    HttpApiEndpoint.get("room", "/realtime/rooms/:roomId", {
      params: { ...projectParams, roomId: Schema.String },
      success: Schema.Struct({ room: LiveRoom }).annotate({
        identifier: "LiveRoomResponse",
        description: "One live room."
      }),
      error: [wire(RoomNotFound), wire(Unavailable)]
    }).annotate(OpenApi.Summary, "Read a live room with its members, state and metadata"),
    HttpApiEndpoint.get("calls", "/realtime/calls", {
      params: projectParams,
      success: LiveCalls
    }).annotate(OpenApi.Summary, "List voice calls with their members"),
    HttpApiEndpoint.get("runners", "/realtime/runners", {
      params: projectParams,
      success: LiveRunners,
      error: wire(NotFound)
    }).annotate(
      OpenApi.Summary,
      "List the runners of the cluster; in production only the operator sees them"
    )
  )
) {}

export const liveFeature = feature({
  word: "live",
  groups: [LiveApi]
})

/** The live view: one room with members and state, voice calls, and runners. */
import { assert, describe, it, layer } from "@effect/vitest"
import { DateTime, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { NodeRepository } from "#sql/live/nodes"
import { RoomRepository } from "#sql/rooms"
import { openRoom } from "#entities/room/model"
import { toRow } from "#entities/room/snapshot"
import { runnersTable } from "#server/operator/runners"
import { TestApp } from "#testing/app"
import { at, configure, newPlayer, request } from "#testing/players"
import { ask, codeOf } from "../../support/developer-requests.ts"
import { makeDeveloper, makeTenantsOf, nodeWith, SharedDatabase } from "../../support/http-stack.ts"
import { DatabaseLive } from "../../support/service.ts"
import {
  awaitCall,
  enableVoice,
  joinCall,
  newMember,
  voiceChannel
} from "../../support/voice-calls.ts"
import { signUp } from "../../support/operator-harness.ts"

const AppLive = TestApp.layerWith({ SVC_SIGNUPS: "open" }).pipe(Layer.provide(DatabaseLive))

const modes = { modes: [{ key: "duel", minPlayers: 1, maxPlayers: 4 }] }
const withRooms = { features: { multiplayer: true }, multiplayer: modes }

const setUp = Effect.gen(function* () {
  const app = yield* TestApp
  const login = yield* request(`${app.url}/v1/developers/login`, { body: app.developer })
  const headers = { authorization: `Bearer ${String(at(login.body, "token"))}` }
  const base = `${app.url}/v1/projects/${app.project}/environments`
  const see = (what: string, env = "development") =>
    request(`${base}/${env}/realtime/${what}`, { headers })
  return { app, base, see }
})

layer(AppLive, { excludeTestServices: true })("the live view of a room", (it) => {
  it.effect("shows members, state and metadata of a live room, and who is away", () =>
    Effect.gen(function* () {
      const { app, see } = yield* setUp
      yield* configure(app, withRooms)
      const ada = yield* newPlayer(app, "Ada")
      const bob = yield* newPlayer(app, "Bob")
      const created = yield* ada.socket.request({
        t: "create",
        mode: "duel",
        private: true,
        metadata: { map: "ice" }
      })
      const roomId = String(at(created, "data", "roomId"))
      yield* bob.socket.request({ t: "join", roomId })
      yield* ada.socket.request({ t: "setState", patch: { round: 3 } })
      yield* bob.socket.request({ t: "setMyState", patch: { ready: true } })
      yield* bob.socket.close()
      const room = yield* app.eventually(
        Effect.map(see(`rooms/${roomId}`), ({ body }) =>
          at(body, "room", "members", 1, "connected") === false ? at(body, "room") : undefined
        ),
        "the live view shows the absence"
      )
      assert.deepInclude(room, {
        id: roomId,
        code: at(created, "data", "code"),
        mode: "duel",
        players: 2,
        maxPlayers: 4,
        metadata: { map: "ice" },
        private: true,
        locked: false,
        hostId: ada.id,
        transport: "server",
        state: { round: 3 },
        runner: null
      })
      const members = [0, 1].map((n) => at(room, "members", n))
      assert.deepInclude(members[0], { id: ada.id, displayName: "Ada", connected: true, state: {} })
      assert.deepInclude(members[0], { absentSince: null })
      assert.deepInclude(members[1], { id: bob.id, connected: false, state: { ready: true } })
      assert.isString(at(members[1], "absentSince"))
    })
  )

  it.effect(
    "hides the live view of a room from other environments and developers, and once it is closed",
    () =>
      Effect.gen(function* () {
        const { app, base, see } = yield* setUp
        yield* configure(app, withRooms)
        const ada = yield* newPlayer(app)
        const created = yield* ada.socket.request({ t: "create", mode: "duel" })
        const roomId = String(at(created, "data", "roomId"))
        assert.strictEqual((yield* see(`rooms/${roomId}`)).status, 200)
        for (const id of ["x", "%00", "rm_00000000000000000000000000"]) {
          const answer = yield* see(`rooms/${id}`)
          assert.deepStrictEqual([answer.status, codeOf(answer)], [404, "room_not_found"], id)
        }
        assert.strictEqual(codeOf(yield* see(`rooms/${roomId}`, "production")), "room_not_found")
        const stranger = yield* signUp("stranger")
        for (const what of [`rooms/${roomId}`, "calls", "runners"]) {
          const url = `${base}/development/realtime/${what}`
          const foreign = yield* request(url, { headers: stranger.headers })
          assert.deepStrictEqual([foreign.status, codeOf(foreign)], [404, "not_found"], what)
          assert.strictEqual((yield* request(url)).status, 401, what)
        }
        yield* ada.socket.request({ t: "leave" })
        yield* app.eventually(
          Effect.map(see(`rooms/${roomId}`), (answer) => codeOf(answer) === "room_not_found"),
          "the closed room is missing"
        )
      })
  )
})

layer(AppLive, { excludeTestServices: true })("the live view of calls and runners", (it) => {
  it.effect("lists the calls of the environment with their members", () =>
    Effect.gen(function* () {
      const { app, see } = yield* setUp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, {
        maxMembers: 8,
        voice: { mode: "p2p", relayOnly: false }
      })
      const ada = yield* newMember(app, channel)
      const bob = yield* newMember(app, channel)
      for (const player of [ada, bob]) yield* joinCall(player, channel)
      yield* awaitCall(bob, [ada, bob])
      const call = yield* app.eventually(
        Effect.map(see("calls"), ({ body }) =>
          at(body, "calls", 0, "members", 1) === undefined ? undefined : at(body, "calls", 0)
        ),
        "the live view shows the call"
      )
      assert.deepInclude(call, { channel, mode: "p2p", relayOnly: false })
      const members = [ada, bob].map(({ id }) => ({ playerId: id, speaks: true, away: false }))
      assert.deepStrictEqual(at(call, "members"), members)
      const elsewhere = yield* see("calls", "production")
      assert.deepStrictEqual(elsewhere.body, { calls: [], truncated: false })
    })
  )

  it.effect("lists this process with its load and counts", () =>
    Effect.gen(function* () {
      const { app, see } = yield* setUp
      yield* configure(app, withRooms)
      const ada = yield* newPlayer(app)
      yield* ada.socket.request({ t: "create", mode: "duel" })
      const runner = yield* app.eventually(
        Effect.map(see("runners"), ({ body }) =>
          at(body, "runners", 0, "rooms") === 1 ? at(body, "runners", 0) : undefined
        ),
        "the runner reports its room"
      )
      assert.deepInclude(runner, { address: null, players: 1, draining: false })
      const load = Number(at(runner, "load"))
      assert.isTrue(load >= 0 && load <= 1, String(load))
      assert.isAbove(Number(at(runner, "memoryBytes")), 0)
    })
  )
})

const firstRoom = "rm_00000000000000000000000001"
const secondRoom = "rm_00000000000000000000000002"

/** The row of a room without members, as its runner stores it. */
const roomOn = (node: string, environmentId: string, id = firstRoom) =>
  toRow(
    openRoom({
      id,
      environmentId,
      code: "ABCD",
      mode: "duel",
      private: false,
      transport: "server",
      p2p: null,
      hostOnlyState: false,
      maxPlayers: 4,
      metadata: {},
      graceSeconds: 10,
      matched: false,
      createdAt: 0
    }),
    1,
    node,
    0
  )

const node = {
  address: "10.0.0.7:9000",
  release: "1.2.3",
  startedAt: 0,
  load: 0.5,
  memoryBytes: 1,
  connections: 2,
  rooms: 3,
  players: 4,
  channels: 5,
  calls: 6,
  draining: true
}

layer(nodeWith({ NODE_ENV: "production" }).pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "the live view in production",
  (it) => {
    it.effect(
      "hides in production the runners, which are those of all tenants, and the runner of a room",
      () =>
        Effect.gen(function* () {
          const developer = yield* makeDeveloper
          const { development, projectId } = yield* makeTenantsOf(developer.developerId)
          const { environmentId } = development
          const nodes = yield* NodeRepository
          const now = yield* DateTime.now
          yield* nodes.write({ node: "n1", reportedAt: now, document: node })
          assert.lengthOf(yield* nodes.read(DateTime.subtract(now, { seconds: 1 })), 1)
          const see = (what: string) =>
            ask(
              developer,
              "GET",
              `/v1/projects/${projectId}/environments/development/realtime/${what}`
            )
          const runners = yield* see("runners")
          assert.deepStrictEqual([runners.status, codeOf(runners)], [404, "not_found"])
          assert.notInclude(JSON.stringify(runners.body), node.address)
          const rooms = yield* RoomRepository
          yield* rooms.insert(roomOn("n1", environmentId))
          const { body } = yield* see(`rooms/${firstRoom}`)
          assert.deepStrictEqual(
            [at(body, "room", "code"), at(body, "room", "runner")],
            ["ABCD", null]
          )
        })
    )
  }
)

layer(nodeWith().pipe(Layer.provideMerge(SharedDatabase.layer)))(
  "the live view in development",
  (it) => {
    it.effect("shows the runner of a room, and forgets runners that report no more", () =>
      Effect.gen(function* () {
        const developer = yield* makeDeveloper
        const { development, projectId } = yield* makeTenantsOf(developer.developerId)
        const nodes = yield* NodeRepository
        const rooms = yield* RoomRepository
        yield* nodes.write({ node: "n1", reportedAt: yield* DateTime.now, document: node })
        yield* rooms.insert(roomOn("n1", development.environmentId))
        const see = (what: string) =>
          ask(
            developer,
            "GET",
            `/v1/projects/${projectId}/environments/development/realtime/${what}`
          )
        const runnerOf = Effect.map(see(`rooms/${firstRoom}`), ({ body }) =>
          at(body, "room", "runner")
        )
        assert.strictEqual(yield* runnerOf, node.address)
        assert.deepStrictEqual((yield* see("runners")).body, {
          runners: [
            {
              node: "n1",
              ...node,
              startedAt: "1970-01-01T00:00:00.000Z",
              reportedAt: "1970-01-01T00:00:00.000Z"
            }
          ]
        })
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* runnerOf, null)
        assert.deepStrictEqual((yield* see("runners")).body, { runners: [] })
      })
    )

    it.effect("answers 503 for a room that a newer release wrote", () =>
      Effect.gen(function* () {
        const developer = yield* makeDeveloper
        const { development, projectId } = yield* makeTenantsOf(developer.developerId)
        const rooms = yield* RoomRepository
        const row = roomOn("n1", development.environmentId, secondRoom)
        const newer = JSON.stringify({ ...JSON.parse(row.snapshot), format: 2 })
        yield* rooms.insert({ ...row, snapshot: newer })
        const path = `/v1/projects/${projectId}/environments/development/realtime/rooms/${secondRoom}`
        const answer = yield* ask(developer, "GET", path)
        assert.deepStrictEqual([answer.status, codeOf(answer)], [503, "unavailable"])
      })
    )
  }
)

describe("the operator's list of runners", () => {
  it("aligns the columns of the operator's list of runners", () => {
    const reportedAt = DateTime.makeUnsafe(0)
    const reports = [
      { node: "n1", reportedAt, document: node },
      { node: "n2", reportedAt, document: { ...node, address: null, draining: false, rooms: 120 } }
    ]
    assert.deepStrictEqual(runnersTable(reports).split("\n"), [
      "runner         state     load  rooms  players  connections  memory  release",
      "10.0.0.7:9000  draining  50 %  3      4        2            0 MiB   1.2.3",
      "n2             running   50 %  120    4        2            0 MiB   1.2.3"
    ])
  })
})

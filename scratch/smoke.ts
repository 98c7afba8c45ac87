import { NodeCrypto, NodeServices, NodeRuntime } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Stream, String as Str } from "effect"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { LocalRooms, RoomLive } from "#entities/room/entity"
import { RoomWriter } from "#entities/room/writer"
import { Room } from "#entities/room/protocol"
import { ThisNode } from "#entities/local-actors"
import { RoomRows } from "#sql/rooms"
import { newId } from "#rpc/ids"
import { embeddedPostgres } from "#src/postgres/embedded"
import migration from "#sql/migrations/0002_rooms"
import { SqlClient } from "effect/sql"

const Db = Layer.unwrap(Effect.map(embeddedPostgres({ dataDir: "/tmp/smoke-pg" }), (url) => PgClient.layer({ url, transformResultNames: Str.snakeToCamel, transformQueryNames: Str.camelToSnake } as any)))
const alone = Sharding.layer.pipe(
  Layer.provideMerge(Runners.layerNoop),
  Layer.provide([MessageStorage.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
  Layer.provide(ShardingConfig.layer({ simulateRemoteSerialization: true }))
)
const main = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`drop table if exists rooms`; yield* sql`drop sequence if exists entity_epochs`
  yield* migration
  const client = yield* Room.client
  const id = yield* newId.room
  const open = { environmentId: "env_1", mode: "default", private: false, transport: "server", p2p: null, hostOnlyState: false, maxPlayers: 4, metadata: {}, graceSeconds: 30, matched: false, code: null, newcomers: [{ playerId: "p1", displayName: "A", node: "n1", connectionId: "c1" }] } as const
  console.log("open", yield* client(id).Open({ open }))
  console.log("peek", yield* client(id).Peek({ playerId: "p1" }))
  yield* client(id).Watch({ environmentId: "env_1", node: "n1", epoch: 0, present: [] }).pipe(Stream.runForEach((b) => Effect.sync(() => console.log("n1", JSON.stringify(b)))), Effect.catch((e) => Effect.sync(() => console.log("watch failed", e))), Effect.forkChild)
  yield* Effect.sleep(100)
  yield* client(id).Input({ node: "n1", inputs: [{ seq: 1, command: { t: "join", playerId: "p1", displayName: "A", node: "n1", connectionId: "c1" } }, { seq: 2, command: { t: "setState", playerId: "p1", patch: { a: 1 } } }, { seq: 0, command: { t: "lock", playerId: "p1", locked: false } }] })
  yield* Effect.sleep(1000)
  console.log(yield* sql`select id, code, listed, members, epoch, snapshot from rooms`)
})
const Live = RoomLive.pipe(
  Layer.provideMerge(alone), Layer.provideMerge(RoomWriter.layer), Layer.provideMerge(RoomRows.layer), Layer.provideMerge(LocalRooms.layer), Layer.provideMerge(ThisNode.layer), Layer.provideMerge(NodeCrypto.layer), Layer.provideMerge(Db), Layer.provide(NodeServices.layer))
NodeRuntime.runMain(main.pipe(Effect.provide(Live)) as any)

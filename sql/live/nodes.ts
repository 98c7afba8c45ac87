/**
 * Reports of the nodes about themselves, one row per node. A node rewrites its row every few seconds; an
 * old row belongs to a stopped node.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { orDieWithTimeout } from "../database.ts"

const Time = Schema.DateTimeUtcFromDate

/** Report of a node; the counts are of this node only. */
const NodeDocument = Schema.Struct({
  /** Address of its runner, `host:port`; null for a single process. */
  address: Schema.NullOr(Schema.String),
  release: Schema.String,
  /** Start of the process, Unix milliseconds. */
  startedAt: Schema.Number,
  /** Share of the time in which the event loop was busy, 0 to 1. */
  load: Schema.Number,
  memoryBytes: Schema.Int,
  connections: Schema.Int,
  rooms: Schema.Int,
  /** Seats in its rooms that are taken. */
  players: Schema.Int,
  channels: Schema.Int,
  calls: Schema.Int,
  draining: Schema.Boolean,
  /**
   * Environments with players who wait too long for their admission on this node. Nodes of release 0.1 do
   * not report it.
   */
  waiting: Schema.optionalKey(Schema.Array(Schema.String))
})
export type NodeDocument = typeof NodeDocument.Type

const NodeReport = Schema.Struct({ node: Schema.String, reportedAt: Time, document: NodeDocument })
export type NodeReport = typeof NodeReport.Type

const Row = Schema.Struct({
  ...NodeReport.fields,
  document: Schema.fromJsonString(NodeDocument)
})

/** Nodes that one read returns: far more than a cluster has. */
const nodesMax = 1000

const statements = (sql: SqlClient.SqlClient) => ({
  write: SqlSchema.void({
    Request: Row,
    execute: ({ document, node, reportedAt }) => sql`
      insert into node_reports (node, reported_at, document)
      values (${node}, ${reportedAt}, ${document})
      on conflict (node) do update
        set reported_at = excluded.reported_at, document = excluded.document`
  }),
  read: SqlSchema.findAll({
    Request: Time,
    Result: Row,
    execute: (since) => sql`
      select node, reported_at, document from node_reports
      where reported_at > ${since} order by node limit ${nodesMax}`
  }),
  addressOf: SqlSchema.findAll({
    Request: Schema.Struct({ node: Schema.String, since: Time }),
    Result: Row,
    execute: ({ node, since }) => sql`
      select node, reported_at, document from node_reports
      where node = ${node} and reported_at > ${since}`
  }),
  sweep: SqlSchema.void({
    Request: Time,
    execute: (before) => sql`delete from node_reports where reported_at < ${before}`
  })
})

/** Repository of `node_reports`. */
export class NodeRepository extends Context.Service<NodeRepository>()(
  "sql/live/nodes/NodeRepository",
  {
    make: Effect.gen(function* () {
      const { addressOf, read, sweep, write } = statements(yield* SqlClient.SqlClient)
      return {
        /** Replaces the report of a node. */
        write: (report: NodeReport) => orDieWithTimeout(write(report)),
        /** Returns the reports since a time. */
        read: (since: typeof Time.Type) => orDieWithTimeout(read(since)),
        /** The address of a node's runner; null if it is unknown, or a single process. */
        addressOf: (node: string, since: typeof Time.Type) =>
          Effect.map(
            orDieWithTimeout(addressOf({ node, since })),
            ([row]) => row?.document.address ?? null
          ),
        sweep: (before: typeof Time.Type) => Effect.orDie(sweep(before))
      }
    })
  }
) {
  static readonly layer = Layer.effect(NodeRepository, this.make)
}

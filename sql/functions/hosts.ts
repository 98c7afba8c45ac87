/**
 * Leases of runners on the functions of environments. One runner holds the lease of an environment at a
 * time; each new holder has a higher epoch.
 *
 * The database's clock decides which leases have ended, since the clocks of two runners may differ.
 */
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, SqlSchema } from "effect/sql"
import { functionLeases } from "#rpc/functions/runtime-limits"
import { EnvironmentId } from "#rpc/ids"
import { failOnTimeout } from "../database.ts"

const Runner = Schema.Struct({
  environmentId: EnvironmentId,
  /** The process; one that is restarted at its address is another node. */
  node: Schema.String,
  address: Schema.String
})

const Holder = Schema.Struct({ node: Schema.String, address: Schema.String, epoch: Schema.Int })
export type FunctionHolder = typeof Holder.Type

const Held = Schema.Struct({ environmentId: EnvironmentId, epoch: Schema.Int })
export type HeldFunctions = typeof Held.Type

const Release = Schema.Struct({ ...Held.fields, node: Schema.String })

const statements = (sql: SqlClient.SqlClient) => {
  const until = sql`clock_timestamp() + make_interval(secs => ${functionLeases.leaseMillis / 1000})`
  const isOver = sql`h.lease_until <= clock_timestamp()`
  return {
    acquire: SqlSchema.findAll({
      Request: Runner,
      Result: Holder,
      execute: ({ address, environmentId, node }) => sql`
        with taken as (
          insert into function_hosts as h (environment_id, node, address, epoch, lease_until)
          values (${environmentId}, ${node}, ${address}, 1, ${until})
          on conflict (environment_id) do update set node = excluded.node,
            address = excluded.address, epoch = h.epoch + 1, lease_until = excluded.lease_until
          where ${isOver} or h.node = excluded.node
          returning node, address, epoch
        )
        select node, address, epoch from taken
        union all
        select node, address, epoch from function_hosts
        where environment_id = ${environmentId} and not exists (select from taken)`
    }),
    find: SqlSchema.findOneOption({
      Request: EnvironmentId,
      Result: Holder,
      execute: (environmentId) => sql`
        select node, address, epoch from function_hosts as h
        where environment_id = ${environmentId} and not ${isOver}`
    }),
    renew: SqlSchema.findAll({
      Request: Schema.String,
      Result: Held,
      execute: (node) => sql`
        update function_hosts as h set lease_until = ${until}
        where node = ${node} and not ${isOver}
        returning environment_id, epoch`
    }),
    release: SqlSchema.void({
      Request: Release,
      execute: ({ environmentId, epoch, node }) => sql`
        update function_hosts set lease_until = '-infinity'
        where environment_id = ${environmentId} and node = ${node} and epoch = ${epoch}`
    })
  }
}

/** Repository of the table `function_hosts`. */
export class FunctionHostRepository extends Context.Service<FunctionHostRepository>()(
  "sql/functions/hosts/FunctionHostRepository",
  {
    make: Effect.gen(function* () {
      const { acquire, find, release, renew } = statements(yield* SqlClient.SqlClient)
      return {
        /**
         * Acquires the lease if it is free. Returns its holder, or nothing while another runner
         * acquires it.
         */
        acquire: (runner: typeof Runner.Type): Effect.Effect<FunctionHolder | undefined> =>
          Effect.map(Effect.orDie(failOnTimeout(acquire(runner))), ([holder]) => holder),
        /** The runner that holds the lease now. */
        find: (environmentId: EnvironmentId) => Effect.orDie(failOnTimeout(find(environmentId))),
        /** Renews the leases of a node; returns those that it still has. */
        renew: (node: string): Effect.Effect<ReadonlyArray<HeldFunctions>> =>
          Effect.orDie(failOnTimeout(renew(node))),
        release: (held: typeof Release.Type): Effect.Effect<void> =>
          Effect.orDie(failOnTimeout(release(held)))
      }
    })
  }
) {
  static readonly layer = Layer.effect(FunctionHostRepository, this.make)
}

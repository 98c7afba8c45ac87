/** Links between this node and the others (see {@link RemoteRooms}): outgoing and incoming ends. */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Schedule, Schema, Scope } from "effect"
import { RunnerAddress, Runners, ShardingConfig } from "effect/cluster"
import { Rpc, RpcClient, RpcGroup } from "effect/rpc"
import { LocalRooms } from "#entities/room/entity"
import { RemoteRoomInputs, RemoteRoomOutputs, RemoteRooms } from "#entities/room/remote"
import { NodeFlush } from "#server/platform/flush"
import { readings } from "#server/platform/metrics"
import { monotonicMillis } from "#entities/monotonic"
import { type RunnerConnection, RunnerLink } from "./runner-link.ts"

const heartbeatMillis = 400

/**
 * Calls between runner links. A batch is JSON in UTF-8, which costs half as much as a string here; an
 * empty one is a heartbeat. The reply names the rooms that refused their commands.
 */
export const LinkRpcs = RpcGroup.make(
  Rpc.make("Batch", { payload: Schema.Uint8Array, success: Schema.Array(Schema.String) })
)

/** Liveness of the other runners. */
export class PeerRunners extends Context.Service<
  PeerRunners,
  {
    /** Whether the runner replies; opens the link to it when there is none. */
    readonly isAlive: (address: RunnerAddress.RunnerAddress) => boolean
  }
>()("server/cluster/runner-links/PeerRunners") {}

const decodeBatch = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      inputs: Schema.Array(RemoteRoomInputs),
      items: Schema.Array(RemoteRoomOutputs)
    })
  )
)

const textDecoder = new TextDecoder()

/** Incoming end of all links: hands batches to this node's rooms and gateway, synchronously in order. */
export const LinkHandlers = LinkRpcs.toLayer(
  Effect.map(LocalRooms, (local) => ({
    Batch: (bytes: Uint8Array) => {
      if (bytes.length === 0) return Effect.succeed([])
      const batch = decodeBatch(textDecoder.decode(bytes))
      if (Option.isNone(batch)) return Effect.die("Failed to decode a batch of a runner link")
      const refused: Array<string> = []
      for (const { inputs, node, room, watch } of batch.value.inputs) {
        const actor = local.actors.get(room)
        if (actor?.activation.accepts(node, watch) === true) actor.submit(node, inputs)
        else refused.push(room)
      }
      for (const outputs of batch.value.items) local.remoteOutputs.send(outputs)
      return Effect.succeed(refused)
    }
  }))
)

/** The form in which runners name themselves to each other, also to those of other releases. */
const addressText = ({ host, port }: RunnerAddress.RunnerAddress): string => `${host}|${port}`

const addressOf = (text: string): RunnerAddress.RunnerAddress => {
  const [host = "", port] = text.split("|")
  return RunnerAddress.make(host, Number(port))
}

/** Registers the metrics of links; returns the counters behind them. */
const makeStats = Effect.fnUntraced(function* (links: ReadonlyMap<string, RunnerLink>) {
  const { counter, gauge } = yield* readings
  const stats = { batches: 0, characters: 0, broken: 0 }
  gauge(
    "svc_runner_links",
    "Links to other runners that reply to heartbeats.",
    () => Array.from(links.values()).filter(({ isAlive }) => isAlive).length
  )
  counter("svc_runner_link_batches_total", "Batches sent over runner links.", () => stats.batches)
  counter(
    "svc_runner_link_characters_total",
    "Characters sent over runner links; most are one byte.",
    () => stats.characters
  )
  counter(
    "svc_runner_links_broken_total",
    "Runner links that closed after they had been established.",
    () => stats.broken
  )
  return stats
})

type LinkStats = Effect.Success<ReturnType<typeof makeStats>>

/** Opens connections of the cluster's RPC for links. */
const makeOpen = Effect.fnUntraced(function* (stats: LinkStats) {
  const protocols = yield* Runners.RpcClientProtocol
  const context = yield* Effect.context<never>()
  const runFork = Effect.runForkWith(context)
  const runSync = Effect.runSyncWith(context)

  return (to: string, onEnded: (reason: string) => void): RunnerConnection => {
    const scope = Scope.makeUnsafe()
    const hooks = RpcClient.ConnectionHooks.of({
      onConnect: Effect.void,
      onDisconnect: Effect.sync(() => onEnded("the connection is closed"))
    })
    const client = RpcClient.make(LinkRpcs, { disableTracing: true }).pipe(
      Effect.provideServiceEffect(RpcClient.Protocol, protocols.make(addressOf(to))),
      Effect.provideService(RpcClient.ConnectionHooks, hooks),
      Effect.provideService(Scope.Scope, scope),
      runSync
    )
    return {
      call: (batch, replied) => {
        stats.batches += batch === "" ? 0 : 1
        stats.characters += batch.length
        runFork(
          Effect.map(Effect.exit(client.Batch(Buffer.from(batch))), (exit) =>
            Exit.isSuccess(exit) ? replied(exit.value) : onEnded(String(Cause.squash(exit.cause)))
          )
        )
      },
      close: () => void runFork(Scope.close(scope, Exit.void))
    }
  }
})

/** All links of this runner. */
export const RunnerLinksLive = Layer.effectContext(
  Effect.gen(function* () {
    const { runnerAddress } = yield* ShardingConfig.ShardingConfig
    const now = monotonicMillis(yield* Clock.Clock)
    const scheduler = yield* NodeFlush
    const runFork = Effect.runForkWith(yield* Effect.context<never>())
    const links = new Map<string, RunnerLink>()
    const stats = yield* makeStats(links)
    const open = yield* makeOpen(stats)

    const linkTo = (to: string): RunnerLink => {
      const known = links.get(to)
      if (known !== undefined) return known
      const link = new RunnerLink({
        open: (onEnded) => open(to, onEnded),
        now,
        scheduler,
        onClose: (reason, wasAlive) => {
          if (wasAlive) stats.broken += 1
          const log = wasAlive ? Effect.logInfo : Effect.logDebug
          runFork(log("The link to a runner has closed", to, reason))
        }
      })
      links.set(to, link)
      return link
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        for (const link of links.values()) link.close()
      })
    )
    yield* Effect.sync(() => {
      for (const [to, link] of links) {
        if (link.isIdle) links.delete(to)
        else link.heartbeat()
      }
    }).pipe(Effect.repeat(Schedule.spaced(heartbeatMillis)), Effect.forkScoped)

    return Context.make(RemoteRooms, {
      address: Option.getOrNull(Option.map(runnerAddress, addressText)),
      send: (to, message, onLost) => linkTo(to).send(message, onLost)
    }).pipe(
      Context.add(PeerRunners, { isAlive: (address) => linkTo(addressText(address)).probe() })
    )
  })
)

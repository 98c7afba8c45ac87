/**
 * One simulation of a cluster from a seed: players play, faults strike, everything heals, and then all
 * views must agree. The same seed gives the same run.
 */
import { graces } from "#entities/reconnect-grace"
import {
  checkChannelOwners,
  checkChannels,
  checkChannelTranscripts,
  sayAll
} from "./channel-checks.ts"
import { keepManaging } from "./channel-play.ts"
import { ChannelRecord } from "./channel-record.ts"
import { ChannelRules, serverMade } from "./channel-rules.ts"
import {
  checkAnswers,
  checkCalm,
  checkDoubled,
  checkForgotten,
  checkLosses,
  checkOwners,
  checkRooms,
  checkSessions,
  checkTranscripts,
  checkWrites
} from "./checks.ts"
import { checkConfigs } from "./config-checks.ts"
import { ConfigPushes } from "./config-pushes.ts"
import { Database, type RealDatabase } from "./database.ts"
import { Cluster } from "./faults.ts"
import { Network } from "./network.ts"
import { Invalidations } from "./invalidations.ts"
import { NodeTable } from "./node-reports.ts"
import {
  keepActing,
  keepConfiguring,
  keepModerating,
  keepWriting,
  type Play,
  rest
} from "./play.ts"
import { checkPlayers } from "./player-checks.ts"
import { PlayerRecords } from "./player-records.ts"
import { type Ledger, Player } from "./player.ts"
import { Chance } from "./random.ts"
import { RoomRecord } from "./record.ts"
import { ShardLocks } from "./shard-locks.ts"
import { signalAll } from "./signals.ts"
import { checkHistories } from "./write-checks.ts"
import { Simulator } from "./simulator.ts"
import { checkCallers, checkCalls } from "./voice-checks.ts"

/** The outcome of one simulation. */
export interface Outcome {
  readonly seed: number
  readonly faults: ReadonlyArray<string>
  readonly log: ReadonlyArray<string>
  readonly outcomes: ReadonlyMap<string, number>
  readonly statements: number
}

const lockMillis = 5000
const stepMillis = 250
/**
 * Long enough for the sweeper to find a room whose runner is gone, and then for the rest of a seat's join
 * deadline and grace: neither runs while the room is on no runner, nor while players have just waited.
 */
const restMillis = 36_000 + graces.holdMillis
/** Long enough for a new config to be in force everywhere. */
const settleMillis = 12_000
/** Long enough for the sweeper to find, wake and close an abandoned room. */
const sleepMillis = 170_000

/** Long enough for an empty channel to end. */
const emptyMillis = 33_000
/** Runs with channels take longer, so only some have them. */
const channelsEvery = 6

/** Constant writes take time too. */
const busyEvery = 3

/** Moderators disturb what other players do. */
const moderatedEvery = 5

/** Developers push configs, which ends what players do. */
const configuredEvery = 7

/** How often the locks are in a database of their own, which does not fail. */
const lockDatabaseEvery = 4

/** The parts of one simulation. */
export interface Life {
  readonly simulator: Simulator
  readonly cluster: Cluster
  readonly play: Play
  readonly record: RoomRecord
  readonly records: PlayerRecords
  readonly configs: ConfigPushes
  readonly channels: ChannelRecord
  readonly rules: ChannelRules
  readonly ledger: Ledger
  readonly real: RealDatabase
}

const checkStep = ({ channels, cluster, play, record, simulator }: Life): void => {
  checkRooms(simulator, record)
  if (!play.channels) return
  checkChannels(simulator, channels, cluster.runners)
  checkCalls(simulator, channels, cluster.runners)
}

/** Phase 1: players act at random and faults strike. */
const turmoil = async (life: Life) => {
  const { cluster, configs, play, records, rules, simulator } = life
  const millis = play.chance.integer(2500, 5500)
  const until = simulator.now + millis
  for (const player of play.players) keepActing(play, player, () => simulator.now < until)
  for (const player of play.busy ? play.players : []) {
    keepWriting(play, player, () => simulator.now < until)
  }
  if (play.busy) {
    const strike = play.chance.happens(0.5) ? () => cluster.flap() : () => cluster.isolateOne()
    simulator.after(play.chance.integer(500, millis), strike)
  }
  if (play.channels) keepManaging(simulator, play.chance, rules, () => simulator.now < until)
  if (play.moderated) keepModerating(play, records, () => simulator.now < until)
  if (play.configured) keepConfiguring(play, configs, simulator, () => simulator.now < until)
  for (let strikes = play.chance.integer(0, 4); strikes > 0; strikes--) {
    simulator.after(play.chance.integer(1000, millis), () => cluster.strike())
  }
  while (simulator.now < until) {
    await simulator.pass(stepMillis)
    checkStep(life)
  }
}

/** Phase 2: all faults are healed and clients behave well. */
const recovery = async (life: Life) => {
  const { cluster, configs, play, record, records, simulator } = life
  cluster.heal()
  if (play.configured && play.chance.happens(0.5)) {
    configs.push(simulator, play.chance)
    await simulator.pass(settleMillis)
    checkConfigs(simulator, configs, record, cluster.runners)
  }
  configs.restore(simulator)
  for (const { id } of play.players) {
    if (play.chance.happens(0.7)) records.pardon(simulator, id)
  }
  const until = simulator.now + restMillis
  while (simulator.now < until) {
    for (const player of play.players) rest(play, player)
    await simulator.pass(1000)
    checkStep(life)
  }
  checkAnswers(simulator, play.players, "quickMatch")
  for (const player of play.players) if (player.waitsFor("quickMatch")) player.ask("cancelMatch")
  const checkSaid = sayAll(simulator, play.players)
  const checkSignalled = signalAll(simulator, play.players, records)
  await simulator.pass(3000)
  checkSaid()
  checkSignalled()
  checkAnswers(simulator, play.players, "none")
}

/** Phase 3: all players have left. What players made ends, what the server made stays. */
const aftermath = async (life: Life) => {
  const { channels, cluster, play, real, rules, simulator } = life
  if (play.channels) await simulator.pass(emptyMillis - 9000)
  checkStep(life)
  for (const { actor } of channels.speaking()) {
    if (actor.state?.options.managed === false) simulator.fault(`${actor.id} outlives its members`)
  }
  const isLeft = (name: string): boolean => !serverMade.some((made) => made === name)
  const left = async () => [
    ...(await real.roomIds()),
    ...(await real.channelNames()).filter(isLeft)
  ]
  if ((await left()).length > 0) await simulator.pass(sleepMillis)
  for (const id of await left()) simulator.fault(`${id} is left in the database`)
  if (!play.channels) return
  for (const runner of cluster.runners) runner.kill(false)
  cluster.start()
  await simulator.pass(lockMillis + 2000)
  rules.check(cluster.runners.at(-1))
  await simulator.pass(6000)
}

/** Runs one simulation from start to end. */
const live = async (life: Life) => {
  const { channels, cluster, ledger, play, record, records, rules, simulator } = life
  const { players } = play
  for (let runners = play.chance.integer(2, 3); runners > 0; runners--) cluster.start()
  await simulator.pass(1500)
  if (play.channels) {
    rules.begin()
    await simulator.pass(500)
  }
  await turmoil(life)
  await recovery(life)
  checkOwners(simulator, record, players)
  checkChannelOwners(simulator, channels, players)
  checkCallers(simulator, channels, cluster.runners, players)
  checkPlayers(simulator, records, players, { record, channels, runners: cluster.runners })
  checkSessions(simulator, record, players, records)
  checkWrites(record, simulator, ledger, cluster.outages)
  checkHistories(record, simulator, ledger, cluster)
  await simulator.pass(2000)
  for (const player of players) {
    if (player.view !== undefined) player.ask("leave")
    for (const channel of player.channels.views.keys()) player.ask("channelLeave", { channel })
  }
  await simulator.pass(9000)
  checkAnswers(simulator, players, "none")
  checkTranscripts(simulator, record, ledger)
  checkForgotten(simulator, record, ledger, cluster)
  checkLosses(simulator, record, ledger, cluster)
  checkDoubled(simulator, ledger.transcripts)
  checkDoubled(simulator, ledger.channelTranscripts)
  checkChannelTranscripts(simulator, channels, ledger.channelTranscripts)
  if (cluster.calm) checkCalm(simulator, record, ledger, play.moderated)
  await aftermath(life)
}

/** The initial state for a seed. */
export const begin = (seed: number, real: RealDatabase) => {
  let streams = 0
  const newChance = () => new Chance(seed, streams++)
  const simulator = new Simulator(newChance())
  const database = new Database(real, simulator, newChance())
  const network = new Network(simulator, newChance())
  const record = new RoomRecord()
  const channels = new ChannelRecord()
  const isApart = seed % lockDatabaseEvery === 3
  const lockDatabase = isApart ? new Database(real, simulator, newChance()) : database
  const locks = new ShardLocks(lockDatabase, lockMillis)
  const invalidations = new Invalidations(database)
  const records = new PlayerRecords(database, invalidations)
  const configs = new ConfigPushes(database, invalidations)
  const nodes = new NodeTable(database)
  const all = { network, database, locks, invalidations, record, records, configs, channels, nodes }
  const cluster = new Cluster(simulator, newChance(), newChance, all)
  const ledger: Ledger = {
    transcripts: [],
    channelTranscripts: [],
    acknowledged: [],
    acknowledgedValues: [],
    left: [],
    kicked: new Map(),
    waits: [],
    codes: new Map(),
    outcomes: new Map()
  }
  const chance = newChance()
  const ids = Array.from(
    { length: chance.integer(3, 5) },
    (_, i) => `pl_${String(i).padStart(26, "0")}`
  )
  const runners = () => cluster.runners
  const rules = new ChannelRules({ simulator, chance: newChance(), players: ids, runners })
  const players = ids.map((id) => new Player(id, simulator, newChance(), ledger, rules))
  const play: Play = {
    chance,
    ledger,
    players,
    runners,
    channels: seed % channelsEvery === 0,
    moderated: seed % moderatedEvery === 2,
    busy: seed % busyEvery === 1,
    configured: seed % configuredEvery === 4
  }
  const parts = { simulator, cluster, play, record, records, configs, channels, rules }
  const life: Life = { ...parts, ledger, real }
  return { life, database }
}

/** Runs the simulation of a seed. */
export const simulate = async (seed: number, real: RealDatabase): Promise<Outcome> => {
  await real.clear()
  const { database, life } = begin(seed, real)
  const { cluster, ledger, simulator } = life
  try {
    await live(life)
  } catch (error) {
    simulator.fault(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  for (const { process } of cluster.runners) process.kill()
  return {
    seed,
    faults: simulator.faults,
    log: simulator.log,
    outcomes: ledger.outcomes,
    statements: database.statements
  }
}

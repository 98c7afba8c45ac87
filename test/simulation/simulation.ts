/**
 * One life of a cluster, from a seed: players play, faults strike, everything heals, and then all
 * must agree. The same seed is the same life.
 */
import {
  checkAnswers,
  checkCalm,
  checkOwners,
  checkRooms,
  checkSessions,
  checkTranscripts,
  checkWrites
} from "./checks.ts"
import { Database, type RealDatabase } from "./database.ts"
import { Cluster } from "./faults.ts"
import { Network } from "./network.ts"
import { keepActing, type Play, rest } from "./play.ts"
import { type Ledger, Player } from "./player.ts"
import { Chance } from "./random.ts"
import { RoomRecord } from "./record.ts"
import { ShardLocks } from "./shard-locks.ts"
import { World } from "./world.ts"

/** What came of a life. */
export interface Outcome {
  readonly seed: number
  readonly faults: ReadonlyArray<string>
  readonly log: ReadonlyArray<string>
  readonly outcomes: ReadonlyMap<string, number>
  readonly statements: number
}

const lockMillis = 5000
const stepMillis = 250
const restMillis = 32_000
/** By then a room that nobody keeps has been found, woken and closed. */
const sleepMillis = 170_000

/** Players do as they like and faults strike. */
const turmoil = async (world: World, cluster: Cluster, play: Play, record: RoomRecord) => {
  const millis = play.chance.integer(4000, 9000)
  const until = world.now + millis
  for (const player of play.players) keepActing(play, player, () => world.now < until)
  for (let strikes = play.chance.integer(0, 4); strikes > 0; strikes--) {
    world.after(play.chance.integer(1000, millis), () => cluster.strike())
  }
  while (world.now < until) {
    await world.pass(stepMillis)
    checkRooms(world, record)
  }
}

/** Everything is well, and clients behave. */
const recovery = async (world: World, cluster: Cluster, play: Play, record: RoomRecord) => {
  cluster.heal()
  const until = world.now + restMillis
  while (world.now < until) {
    for (const player of play.players) rest(play, player)
    await world.pass(1000)
    checkRooms(world, record)
  }
  checkAnswers(world, play.players, "quickMatch")
  for (const player of play.players) if (player.waitsFor("quickMatch")) player.ask("cancelMatch")
  await world.pass(3000)
  checkAnswers(world, play.players, "none")
}

/** Plays the life of a seed. */
export const simulate = async (seed: number, real: RealDatabase): Promise<Outcome> => {
  await real.clear()
  let streams = 0
  const newChance = () => new Chance(seed, streams++)
  const world = new World(newChance())
  const database = new Database(real, world, newChance())
  const network = new Network(world, newChance())
  const record = new RoomRecord()
  const locks = new ShardLocks(database, lockMillis)
  const cluster = new Cluster(world, newChance(), newChance, { network, database, locks, record })
  const ledger: Ledger = {
    transcripts: [],
    acknowledged: [],
    waits: [],
    codes: new Map(),
    outcomes: new Map()
  }
  const chance = newChance()
  const players = Array.from(
    { length: chance.integer(3, 6) },
    (_, i) => new Player(`pl_${String(i).padStart(26, "0")}`, world, newChance(), ledger)
  )
  const play: Play = { chance, ledger, players, runners: () => cluster.runners }
  try {
    for (let runners = chance.integer(2, 3); runners > 0; runners--) cluster.start()
    await world.pass(1500)
    await turmoil(world, cluster, play, record)
    await recovery(world, cluster, play, record)
    checkOwners(world, record, players)
    checkSessions(world, record, players)
    checkWrites(record, world, ledger, cluster.outages)
    await world.pass(2000)
    for (const player of players) if (player.view !== undefined) player.ask("leave")
    await world.pass(9000)
    checkAnswers(world, players, "none")
    checkTranscripts(world, record, ledger)
    if (cluster.calm) checkCalm(world, record, ledger)
    if ((await real.roomIds()).length > 0) await world.pass(sleepMillis)
    for (const id of await real.roomIds()) world.fault(`${id} is left in the database`)
  } catch (error) {
    world.fault(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  for (const { process } of cluster.runners) process.kill()
  return {
    seed,
    faults: world.faults,
    log: world.log,
    outcomes: ledger.outcomes,
    statements: database.statements
  }
}

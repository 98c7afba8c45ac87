/**
 * One simulation of players who cannot return for a while, from a seed: all runners are away, admissions
 * queue, and the room moves meanwhile. One player, the truant, stays away. Nobody who comes back in time
 * loses the seat, and the seat of the truant ends.
 */
import { graces } from "#entities/reconnect-grace"
import { checkRooms } from "./checks.ts"
import type { RealDatabase } from "./database.ts"
import type { Player } from "./player.ts"
import { begin, type Life, type Outcome } from "./simulation.ts"

const second = 1000
const stepMillis = 250
const graceMillis = 30 * second
/** Long enough for two runners to share all shards. */
const startMillis = 3 * second
/** Long enough for a truant's grace to end, for the sweeper to find its room, and for all rounding. */
const endMillis = graceMillis + 60 * second
/** A player comes back so much later than it could. */
const dallyMillis = 12 * second

/** What happens before the players are back. */
interface Plan {
  readonly stops: boolean
  /** Time for which no runner is there; 0: one is always there. */
  readonly awayMillis: number
  readonly queueMillis: number
  readonly moves: boolean
}

const plan = ({ play: { chance } }: Life): Plan => {
  const kind = chance.pick(["away", "queue", "both", "lost"] as const)
  const away = chance.happens(0.5) ? 300 : chance.integer(10, 420)
  return {
    stops: chance.happens(0.6),
    awayMillis:
      (kind === "lost" ? graces.absenceSeconds + 60 : kind === "queue" ? 0 : away) * second,
    queueMillis: (kind === "away" ? 0 : kind === "lost" ? 5 : chance.integer(10, 50)) * second,
    moves: chance.happens(0.7)
  }
}

const pass = async (life: Life, millis: number): Promise<void> => {
  const { record, simulator } = life
  const until = simulator.now + millis
  while (simulator.now < until) {
    await simulator.pass(Math.min(stepMillis, until - simulator.now))
    checkRooms(simulator, record)
  }
}

const open = ({ cluster }: Life) => cluster.runners.filter((runner) => runner.open)

const connect = (life: Life, player: Player): void => {
  const runner = life.play.chance.pick(open(life))
  if (runner !== undefined) player.connect(runner)
}

/** Seats all players in one room; returns its id. */
const seatAll = async (life: Life): Promise<string> => {
  const { ledger, play } = life
  const [founder, ...others] = play.players
  for (const player of play.players) connect(life, player)
  await pass(life, second)
  founder?.ask("create", { mode: "club" })
  await pass(life, second)
  const [roomId = ""] = ledger.codes.keys()
  for (const player of others) player.ask("join", { roomId })
  await pass(life, second)
  return roomId
}

/** Stops or kills runners, all or one, and starts others. */
const interrupt = async (life: Life, { awayMillis, stops }: Plan): Promise<void> => {
  const { cluster } = life
  const [first, ...others] = open(life)
  for (const runner of awayMillis > 0 ? [first, ...others] : [first]) {
    if (stops) runner?.stop()
    else runner?.kill(false)
  }
  await pass(life, awayMillis)
  cluster.start()
  await pass(life, startMillis)
}

/** Tries until the player has a welcome. */
const comeBack = async (life: Life, players: ReadonlyArray<Player>): Promise<void> => {
  const isBack = ({ welcome }: Player): boolean => welcome
  const giveUp = life.simulator.now + graces.waitingSeconds * second
  while (!players.every(isBack) && life.simulator.now < giveUp) {
    for (const player of players) if (player.socket === undefined) connect(life, player)
    await pass(life, stepMillis)
  }
}

/** In the middle of the queue, the runner of the room stops: the room moves to another one. */
const moveLater = (life: Life, roomId: string, millis: number): void => {
  const { cluster, record, simulator } = life
  simulator.after(millis, () => {
    const owner = record.speaking().find(({ actor }) => actor.id === roomId)?.process
    const runner = open(life).find(({ process }) => process === owner) ?? open(life)[0]
    cluster.start()
    simulator.after(startMillis, () => runner?.stop())
  })
}

const checkBack = (
  { simulator }: Life,
  roomId: string,
  players: ReadonlyArray<Player>,
  isKept: boolean
): void => {
  for (const { id, view } of players) {
    if ((view?.id === roomId) === isKept) continue
    simulator.fault(`${id} is ${isKept ? "not " : ""}back in ${roomId}`)
  }
}

const live = async (life: Life): Promise<void> => {
  const { cluster, play, record, simulator } = life
  const { chance, players } = play
  const { awayMillis, queueMillis, ...how } = plan(life)
  simulator.note(`away for ${awayMillis}, a queue of ${queueMillis}, ${JSON.stringify(how)}`)
  for (let runners = chance.integer(2, 3); runners > 0; runners--) cluster.start()
  await pass(life, startMillis)
  const roomId = await seatAll(life)
  await pass(life, chance.integer(2, 70) * second)
  checkBack(life, roomId, players, true)
  await interrupt(life, { awayMillis, queueMillis, ...how })
  await pass(life, chance.integer(0, dallyMillis))
  for (const runner of cluster.runners) runner.admissionMillis = () => queueMillis
  const [truant, ...returning] = players
  if (truant?.socket !== undefined) truant.drop(0)
  for (const player of returning) if (awayMillis === 0 && player.welcome) player.drop(0)
  // The old runner stops while all still wait, so that nobody loses the connection after the return.
  const latestMove = queueMillis - startMillis - second
  if (how.moves && latestMove > 0) moveLater(life, roomId, chance.integer(0, latestMove))
  await comeBack(life, returning)
  for (const player of returning) player.ask("resume", { roomId })
  await pass(life, 2 * second)
  const isKept = awayMillis < graces.absenceSeconds * second
  checkBack(life, roomId, returning, isKept)
  await pass(life, endMillis)
  for (const { actor } of record.speaking()) {
    if (truant !== undefined && actor.state?.members.has(truant.id) === true)
      simulator.fault(`${actor.id} still keeps the seat of ${truant.id}`)
  }
}

/** Runs the simulation of a seed. */
export const simulateReturns = async (seed: number, real: RealDatabase): Promise<Outcome> => {
  await real.clear()
  const { database, life } = begin(seed, real)
  const { cluster, ledger, simulator } = life
  try {
    await live(life)
  } catch (error) {
    simulator.fault(error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  for (const { process } of cluster.runners) process.kill()
  const { faults, log } = simulator
  return { seed, faults, log, outcomes: ledger.outcomes, statements: database.statements }
}

/**
 * Checks that rooms execute each write once. Every written value is unique, and an activation descends
 * from the one whose snapshot it woke from. In the history of an activation each write stands at most
 * once, the writes of a player stand in the order in which it sent them, and the state is their result.
 */
import { isDeepStrictEqual } from "node:util"
import type { RoomState } from "#entities/room/model"
import { toJsonObject } from "#entities/room/json-state"
import { checkSpan, safeOf } from "./checks.ts"
import type { Cluster } from "./faults.ts"
import type { AcknowledgedValue, Ledger } from "./player.ts"
import type { Activation, RoomRecord, Write } from "./record.ts"
import type { Simulator } from "./simulator.ts"

type History = ReadonlyArray<Write>

const resultOf = (history: History) =>
  Object.fromEntries(history.flatMap(({ patch }) => Object.entries(patch)))

const hasResult = (history: History, state: RoomState): boolean =>
  history.length === state.version &&
  isDeepStrictEqual(resultOf(history), toJsonObject(state.sharedState))

/** The history of each activation of a room, in the order of the activations. */
const historiesOf = (
  simulator: Simulator,
  record: RoomRecord,
  id: string
): ReadonlyArray<History> => {
  const histories: Array<History> = []
  for (const { actor, wokenFrom, writes } of record.activations.get(id) ?? []) {
    const origins = histories.map((history) =>
      history.filter(({ version }) => version <= (wokenFrom?.version ?? 0))
    )
    const origin =
      wokenFrom === undefined ? [] : origins.findLast((history) => hasResult(history, wokenFrom))
    if (origin === undefined && wokenFrom?.version !== 0) {
      simulator.fault(`${id} of ${actor.epoch} woke from a state that no activation had`)
    }
    histories.push([...(origin ?? []), ...writes])
  }
  return histories
}

/** The author and the number of a write: `02:17` is the seventeenth frame of one player. */
const valuesOf = (history: History): ReadonlyArray<string> =>
  history.flatMap(({ patch }) =>
    Object.entries(patch).map(([key, value]) =>
      typeof value === "string" ? value : `${key.slice(-2)}:${String(value)}`
    )
  )

const checkOrder = (simulator: Simulator, id: string, history: History): void => {
  const last = new Map<string, number>()
  for (const value of valuesOf(history)) {
    const [author = "", text] = value.split(":")
    const before = last.get(author) ?? 0
    const number = Number(text)
    if (number === before) simulator.fault(`${id} executes ${value} twice`)
    else if (number < before) simulator.fault(`${id} executes ${value} after ${author}:${before}`)
    last.set(author, Math.max(number, before))
  }
}

/** Of all acknowledged writes, each activation forgets at most those of the promised time. */
const checkForgottenValues = (
  simulator: Simulator,
  id: string,
  activations: ReadonlyArray<Activation>,
  histories: ReadonlyArray<History>,
  acknowledged: ReadonlyArray<AcknowledgedValue>
): void => {
  for (const [index, { wokenAt, wokenFrom, writes }] of activations.entries()) {
    if (wokenFrom === undefined) continue
    const history = histories[index] ?? []
    const kept = new Set(valuesOf(history.slice(0, history.length - writes.length)))
    const since = activations[index - 1]?.wokenAt ?? Number.POSITIVE_INFINITY
    checkSpan(
      simulator,
      id,
      acknowledged.filter(
        ({ at, sentAt, value }) => sentAt >= since && at < wokenAt && !kept.has(value)
      )
    )
  }
}

/** Checks the writes of all rooms; the surviving rooms must have every safe acknowledged one. */
export const checkHistories = (
  record: RoomRecord,
  simulator: Simulator,
  ledger: Ledger,
  { bereft, crashed, outages }: Pick<Cluster, "bereft" | "crashed" | "outages">
): void => {
  const speaking = new Set(record.speaking().map(({ actor }) => actor))
  const safe = new Set(safeOf(ledger.acknowledgedValues, outages))
  for (const [id, activations] of record.activations) {
    const histories = historiesOf(simulator, record, id)
    for (const history of histories) checkOrder(simulator, id, history)
    const executed = new Set(histories.flatMap(valuesOf))
    const acknowledged = ledger.acknowledgedValues.filter(({ roomId }) => roomId === id)
    if (!bereft || !crashed) {
      checkForgottenValues(simulator, id, activations, histories, acknowledged)
    }
    for (const { value } of acknowledged) {
      if (!executed.has(value))
        simulator.fault(`${id} has acknowledged ${value} without executing it`)
    }
    for (const [index, { actor }] of activations.entries()) {
      const history = histories[index] ?? []
      const { state } = actor
      if (!speaking.has(actor) || state === undefined || state.closed !== null) continue
      if (!hasResult(history, state)) simulator.fault(`${id} is not the result of its writes`)
      const survived = new Set(valuesOf(history))
      for (const write of acknowledged) {
        if (safe.has(write) && !survived.has(write.value)) {
          simulator.fault(`${id} has lost the acknowledged ${write.value}`)
        }
      }
    }
  }
}

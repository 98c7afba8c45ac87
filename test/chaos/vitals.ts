/** What a runner's process holds, and what becomes of it over time. */
import { once } from "node:events"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Schema } from "effect"

/** Where the reporter of a process listens. */
export const vitalsPath = (pid: number): string => join(tmpdir(), `chaos-vitals-${pid}.sock`)

/** Bytes of data alive, on the heap and beside it, of compiled code, and of the machine; what is open. */
const Vitals = Schema.Struct({
  data: Schema.Number,
  code: Schema.Number,
  rss: Schema.Number,
  /** Sockets, timers and files. */
  handles: Schema.Number
})
export type Vitals = typeof Vitals.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Vitals))

/** The vitals of a process, now. */
export const vitalsOf = async (pid: number): Promise<Vitals> => {
  const socket = connect(vitalsPath(pid))
  let answer = ""
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()))
  await once(socket, "end")
  return decode(answer)
}

/** A value at a time, in hours. */
export interface Point {
  readonly hours: number
  readonly value: number
}

/** How much a value grows in an hour, by least squares, and how sure that is (one standard error). */
export interface Slope {
  readonly hourly: number
  readonly error: number
}

/** Where points are on the whole. */
export const meanOf = (points: ReadonlyArray<Point>): Point => ({
  hours: points.reduce((sum, point) => sum + point.hours, 0) / points.length,
  value: points.reduce((sum, point) => sum + point.value, 0) / points.length
})

export const slopeOf = (points: ReadonlyArray<Point>): Slope => {
  const count = points.length
  const { hours, value } = meanOf(points)
  const spread = points.reduce((sum, point) => sum + (point.hours - hours) ** 2, 0)
  const hourly =
    points.reduce((sum, point) => sum + (point.hours - hours) * (point.value - value), 0) / spread
  const rest = points.reduce(
    (sum, point) => sum + (point.value - value - hourly * (point.hours - hours)) ** 2,
    0
  )
  return { hourly, error: Math.sqrt(rest / Math.max(1, count - 2) / spread) }
}

/** Small plots in SVG, each with its numbers as text for screen readers. */
import { useEffect, useRef } from "preact/hooks"
import { dayName } from "../core/time.ts"
import { count } from "./small.tsx"

interface Day {
  readonly date: string
  readonly count: number
}

const height = 120
const barWidth = 40
const barGap = 8

/** Bars of days, with the number of each on hover. */
export const DayBars = ({
  days,
  label
}: {
  readonly days: ReadonlyArray<Day>
  readonly label: string
}) => {
  const most = Math.max(1, ...days.map((day) => day.count))
  const [first, last] = [days[0], days.at(-1)]
  return (
    <figure style={{ margin: 0 }}>
      <svg
        class="plot"
        viewBox={`0 0 ${days.length * (barWidth + barGap)} ${height}`}
        height={height}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${days.map((day) => `${dayName(day.date)} ${day.count}`).join(", ")}`}
      >
        {days.map((day, index) => {
          const size = Math.max(day.count === 0 ? 0 : 3, (day.count / most) * height)
          const x = index * (barWidth + barGap)
          return (
            <g key={day.date}>
              <title>{`${dayName(day.date)}: ${count(day.count)}`}</title>
              <rect class="rest" x={x} y={0} width={barWidth} height={height} />
              <rect x={x} y={height - size} width={barWidth} height={size} />
            </g>
          )
        })}
      </svg>
      <figcaption class="plot-labels">
        <span>{first === undefined ? "" : dayName(first.date)}</span>
        <span>{last === undefined ? "" : dayName(last.date)}</span>
      </figcaption>
    </figure>
  )
}

const samplesMax = 90

/** Keeps the latest samples of a value, one for each new `source`; a new key starts over. */
export const useSamples = (
  value: number | undefined,
  source: unknown,
  key: string
): ReadonlyArray<number> => {
  const samples = useRef<{ key: string; values: Array<number> }>({ key, values: [] })
  if (samples.current.key !== key) samples.current = { key, values: [] }
  useEffect(() => {
    if (value === undefined) return
    samples.current.values.push(value)
    if (samples.current.values.length > samplesMax) samples.current.values.shift()
  }, [source, key])
  return samples.current.values
}

/** The course of a value since the view was opened. */
export const Course = ({
  label,
  values
}: {
  readonly values: ReadonlyArray<number>
  readonly label: string
}) => {
  const most = Math.max(1, ...values)
  const points = values.map(
    (value, index) => `${(index / (samplesMax - 1)) * 100},${36 - (value / most) * 34}`
  )
  return (
    <svg
      class="plot"
      viewBox="0 0 100 38"
      height={38}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polyline class="path" points={points.join(" ")} />
    </svg>
  )
}

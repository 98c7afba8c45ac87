/** Small plots in SVG, each with its numbers as text for screen readers. */
import { useEffect, useRef } from "preact/hooks"
import { dayName } from "../core/time.ts"
import { count } from "./basics.tsx"

interface Day {
  readonly date: string
  readonly count: number
}

/** Height in units of the drawing, which is stretched to its place. */
const height = 120
const barWidth = 40
const barGap = 8

/** One bar, of one or more parts that are stacked. */
export interface Bar {
  readonly key: string
  /** All values as text, shown on hover. */
  readonly title: string
  readonly parts: ReadonlyArray<{ readonly tone: "" | "amber" | "red"; readonly value: number }>
}

const sumOf = ({ parts }: Bar): number => parts.reduce((sum, { value }) => sum + value, 0)

/** Least height of a part that is not zero. */
const leastHeight = 3

const Stacked = ({ bar, max, x }: Readonly<{ bar: Bar; max: number; x: number }>) => {
  let top = height
  return (
    <g>
      <title>{bar.title}</title>
      <rect class="rest" x={x} y={0} width={barWidth} height={height} />
      {bar.parts.map(({ tone, value }, index) => {
        const size = value === 0 ? 0 : Math.max(leastHeight, (value / max) * height)
        top -= size
        return <rect key={index} class={tone} x={x} y={top} width={barWidth} height={size} />
      })}
    </g>
  )
}

/** Row of bars, with the values of each on hover and a text for screen readers. */
export const Bars = ({
  bars,
  from,
  label,
  middle,
  to
}: {
  readonly bars: ReadonlyArray<Bar>
  readonly label: string
  readonly from: string
  /** Label of the highest bar, where the figures beside the plot do not show its height. */
  readonly middle?: string
  readonly to: string
}) => {
  const max = Math.max(1, ...bars.map(sumOf))
  return (
    <figure style={{ margin: 0 }}>
      <svg
        class="plot"
        viewBox={`0 0 ${bars.length * (barWidth + barGap)} ${height}`}
        height={height}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {bars.map((bar, index) => (
          <Stacked key={bar.key} bar={bar} max={max} x={index * (barWidth + barGap)} />
        ))}
      </svg>
      <figcaption class="plot-labels">
        <span>{from}</span>
        {middle !== undefined && <span>{middle}</span>}
        <span>{to}</span>
      </figcaption>
    </figure>
  )
}

/** Row of one bar for each day, with its number. */
export const DayBars = ({ days, label }: Readonly<{ days: ReadonlyArray<Day>; label: string }>) => {
  const nameOf = (day: Day | undefined): string => (day === undefined ? "" : dayName(day.date))
  return (
    <Bars
      bars={days.map((day) => ({
        key: day.date,
        title: `${nameOf(day)}: ${count(day.count)}`,
        parts: [{ tone: "", value: day.count }]
      }))}
      label={`${label}: ${days.map((day) => `${nameOf(day)} ${day.count}`).join(", ")}`}
      from={nameOf(days[0])}
      to={nameOf(days.at(-1))}
    />
  )
}

const samplesMax = 90

/** Returns the latest samples of a value, one for each new `source`; a new key starts over. */
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

/** Plot of a value since the view was opened. */
export const Course = ({
  label,
  values
}: {
  readonly values: ReadonlyArray<number>
  readonly label: string
}) => {
  const max = Math.max(1, ...values)
  const points = values.map(
    (value, index) => `${(index / (samplesMax - 1)) * 100},${36 - (value / max) * 34}`
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

/** Times as people read them: relative, with the exact one in the viewer's zone and in UTC. */

const units = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60]
] as const

const relativeForm = new Intl.RelativeTimeFormat("en", { numeric: "auto" })
const exactForm = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" })
const minuteForm = new Intl.DateTimeFormat("en", { hour: "numeric", minute: "2-digit" })
const dayForm = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" })

/** `5 minutes ago`; `in 3 days` for a time to come. */
export const relativeTime = (iso: string): string => {
  const seconds = (Date.parse(iso) - Date.now()) / 1000
  const unit = units.find(([, size]) => Math.abs(seconds) >= size)
  if (unit === undefined) {
    if (seconds > 0) return "in less than a minute"
    return seconds > -10 ? "just now" : "less than a minute ago"
  }
  return relativeForm.format(Math.round(seconds / unit[1]), unit[0])
}

/** The time in the viewer's zone, and in UTC. */
export const exactTime = (iso: string): string => `${exactForm.format(Date.parse(iso))} (${iso})`

/** Lists the current month and those before it in UTC, newest first: `2026-11`. */
export const lastMonths = (count: number): ReadonlyArray<string> => {
  const now = new Date()
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - index)).toISOString().slice(0, 7)
  )
}

/** `Nov 20` of `2026-11-20`. */
export const dayName = (date: string): string => dayForm.format(Date.parse(`${date}T00:00:00Z`))

/** `4:05 PM` in the viewer's zone, and in UTC. */
export const minuteName = (iso: string): string =>
  iso === "" ? "" : `${minuteForm.format(Date.parse(iso))} (${iso.slice(11, 16)} UTC)`

/** The same with its day. */
export const hourName = (iso: string): string =>
  iso === "" ? "" : `${dayForm.format(Date.parse(iso))}, ${minuteName(iso)}`

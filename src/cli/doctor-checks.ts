/** Results of `svc doctor`, and the rules by which measured values become results. */

/** Outcome of a check. Warnings do not fail the command. */
export type CheckStatus = "ok" | "warning" | "failed" | "skipped"

/** Result of one check, with its remedy. */
export interface Check {
  readonly name: string
  readonly status: CheckStatus
  readonly detail: string
  readonly remedy?: string
}

const result =
  (status: CheckStatus) =>
  (name: string, detail: string, remedy?: string): Check => ({
    name,
    status,
    detail,
    ...(remedy === undefined ? {} : { remedy })
  })

export const ok = result("ok")
export const warning = result("warning")
export const failed = result("failed")
export const skipped = result("skipped")

const numbersOf = (version: string): ReadonlyArray<number> =>
  version.replace(/^v/, "").split(/[.-]/, 3).map(Number)

/** Whether a version is at least another, by its three numbers. */
export const isAtLeast = (version: string, least: string): boolean => {
  const [given, wanted] = [numbersOf(version), numbersOf(least)]
  const different = [0, 1, 2].find((index) => given[index] !== wanted[index])
  return different === undefined || (given[different] ?? 0) > (wanted[different] ?? 0)
}

const oldestNode = "22.19.0"
const serviceNode = "24.0.0"

export const nodeCheck = (version: string): Check => {
  if (isAtLeast(version, serviceNode)) return ok("node", version)
  const remedy = "Install Node 24, or add it to the game: npm install --save-dev node@24"
  return isAtLeast(version, oldestNode)
    ? warning("node", `${version}; svc dev and the service need 24`, remedy)
    : failed("node", `${version}; svc needs ${oldestNode}`, remedy)
}

const clockWarningSeconds = 5
const clockFailedSeconds = 60

/**
 * Returns the check of the clocks. `ahead` is how far this machine's clock is ahead of the
 * service's, `within` the error of the measurement.
 */
export const clockCheck = (ahead: number, within: number): Check => {
  const off = Math.max(0, Math.abs(ahead) - within)
  const detail = `${Math.round(Math.abs(ahead))} s ${ahead > 0 ? "ahead of" : "behind"} the service`
  const remedy =
    "Set the clocks of both machines by NTP: tokens and TURN credentials expire by them."
  if (off > clockFailedSeconds) return failed("clock", detail, remedy)
  if (off > clockWarningSeconds) return warning("clock", detail, remedy)
  return ok("clock", "agrees with the service")
}

/** Returns the checks of versions. `installed` are packages of the game with their versions. */
export const versionChecks = (
  service: string,
  cli: string,
  installed: ReadonlyMap<string, string>
): ReadonlyArray<Check> => {
  const check = (name: string, version: string, install: string): Check =>
    version === service
      ? ok(name, version)
      : warning(
          name,
          `${version}; the service is ${service}`,
          isAtLeast(version, service) ? "Upgrade the service." : `${install}@${service}`
        )
  return [
    check("svc version", cli, "npm install --save-dev @player-backend/cli"),
    ...Array.from(installed, ([name, version]) =>
      check(`${name} version`, version, `npm install ${name}`)
    )
  ]
}

/** Response of `GET /readyz` from the process that answered. */
export interface Readiness {
  readonly ready: boolean
  readonly database: boolean
  readonly shards: boolean
  readonly draining: boolean
}

export const readyCheck = ({ database, draining, ready, shards }: Readiness): Check => {
  if (ready) return ok("ready", "the database is reachable, rooms are assigned")
  if (!database) {
    return failed(
      "ready",
      "the service does not reach its database",
      "Look at the log of the service, and check DATABASE_URL and the Postgres behind it."
    )
  }
  if (draining) {
    return failed("ready", "the process shuts down", "Try again; a start takes a few seconds.")
  }
  return failed(
    "ready",
    shards ? "the process starts" : "the process has no rooms assigned",
    "Try again in a minute. If it stays so, runners cannot reach each other: check SVC_RUNNER_HOST."
  )
}

const warningBytes = 2 * 1024 ** 3
const failedBytes = 200 * 1024 ** 2

export const diskCheck = (directory: string, freeBytes: number): Check => {
  const detail = `${(freeBytes / 1e9).toFixed(1)} GB free in ${directory}`
  const remedy = "Free some space: Postgres stops when the disk is full."
  if (freeBytes < failedBytes) return failed("disk", detail, remedy)
  return freeBytes < warningBytes ? warning("disk", detail, remedy) : ok("disk", detail)
}

/**
 * Metrics of what an operator must look after: readiness, the database, the disk of the data directory, and
 * mails that wait. They are sampled every few seconds, since a scrape reads numbers only.
 */
import { statfs } from "node:fs/promises"
import { DateTime, Effect, Exit, Layer, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { orDieWithTimeout } from "#sql/database"
import { MailRepository } from "#sql/mail"
import { Readiness } from "#server/cluster/readiness"
import { readings } from "#server/platform/metrics"
import { Settings } from "#server/platform/settings/settings"

const sampleEvery = "10 seconds"

/** Samples and registers the metrics. */
export const HealthReadings = Layer.effectDiscard(
  Effect.gen(function* () {
    const { gauge } = yield* readings
    const { dataDir } = yield* Settings
    const mails = yield* MailRepository
    const readiness = yield* Readiness
    const sql = yield* SqlClient.SqlClient
    const values = { database: 0, ready: 0, free: 0, size: 0, mailsSeconds: 0 }
    gauge("svc_ready", "1 while this process takes players, else 0.", () => values.ready)
    gauge("svc_database_available", "1 while the database answers, else 0.", () => values.database)
    gauge("svc_data_directory_bytes", "Size of the disk of SVC_DATA_DIR.", () => values.size)
    gauge("svc_data_directory_free_bytes", "Free bytes of that disk.", () => values.free)
    const mailHelp = "Age of the oldest mail that waits; 0 without one."
    gauge("svc_mails_oldest_seconds", mailHelp, () => values.mailsSeconds)
    const sampleDisk = Effect.promise(() =>
      statfs(dataDir).then(
        ({ bavail, blocks, bsize }) => ({ free: bavail * bsize, size: blocks * bsize }),
        // The directory comes with the first file.
        () => undefined
      )
    )
    const sample = Effect.gen(function* () {
      const isAvailable = Exit.isSuccess(yield* Effect.exit(orDieWithTimeout(sql`select 1`)))
      const isReady = isAvailable && (yield* readiness.shards) && !(yield* readiness.draining)
      Object.assign(values, { database: Number(isAvailable), ready: Number(isReady) })
      Object.assign(values, yield* sampleDisk)
      if (!isAvailable) return
      const oldest = yield* mails.oldest
      const now = yield* DateTime.now
      values.mailsSeconds =
        oldest === null ? 0 : (DateTime.toEpochMillis(now) - DateTime.toEpochMillis(oldest)) / 1000
    })
    yield* sample.pipe(
      Effect.tapDefect((defect) => Effect.logDebug("Failed to sample the health", defect)),
      Effect.exit,
      Effect.repeat(Schedule.spaced(sampleEvery)),
      Effect.forkScoped
    )
  })
)

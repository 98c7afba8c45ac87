/**
 * Temporary data directories of services. If root runs the tests, the users of Postgres and of functions must be
 * able to pass through: otherwise the service takes a folder of the system, which outlives the test.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"

/** Makes a data directory that the scope removes. */
export const dataFolder = (prefix: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await mkdtemp(join(tmpdir(), prefix))
      await chmod(folder, 0o711)
      return folder
    }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )

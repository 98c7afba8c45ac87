/** Migrations of a database: the `.sql` files of `migrations/<binding>`, in the order of their names. */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { exitCodes, Failure } from "./failures.ts"
import { note } from "./output.ts"
import type { Target } from "./target.ts"
import { migrate } from "./functions-service.ts"

const extension = ".sql"

/** The migrations of a folder; none if there is no folder. */
const readMigrations = (folder: string) =>
  Effect.promise(async () => {
    const names = await readdir(folder).catch(() => [])
    const files = names.filter((name) => name.endsWith(extension)).toSorted()
    return Promise.all(
      files.map(async (name) => ({
        name: name.slice(0, -extension.length),
        sql: await readFile(join(folder, name), "utf8")
      }))
    )
  })

/** Applies the migrations of a binding that its database does not have yet. */
export const applyMigrations = Effect.fnUntraced(function* (
  target: Target,
  folder: string,
  binding: string
) {
  const migrations = yield* readMigrations(join(folder, "migrations", binding))
  if (migrations.length === 0) return { applied: [], skipped: [] }
  const { applied, failed, skipped } = yield* migrate(target, binding, migrations)
  if (applied.length > 0) yield* note(`Applied to ${binding}: ${applied.join(", ")}`)
  if (failed === null) return { applied, skipped }
  return yield* new Failure({
    exitCode: exitCodes.no,
    code: "migration_failed",
    message: `Failed to apply the migration ${failed.name} of ${binding}: ${failed.message}`,
    hints: ["Nothing of it was kept. Correct the file and run the command again."]
  })
})

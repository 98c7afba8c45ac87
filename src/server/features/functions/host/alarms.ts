/** Whether durable objects of an environment wait for an alarm, which needs the process. */
import { existsSync, readdirSync } from "node:fs"
import { basename, join } from "node:path"
import { DatabaseSync } from "node:sqlite"

const metadata = "metadata.sqlite"

const hasAlarm = (file: string): boolean => {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return database.prepare("select 1 from _cf_ALARM limit 1").get() !== undefined
  } finally {
    database.close()
  }
}

/** Looks into the database of each class of durable objects. */
export const hasAlarms = (data: string): boolean => {
  const root = join(data, "do")
  if (!existsSync(root)) return false
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => basename(name) === metadata)
    .some((name) => hasAlarm(join(root, name)))
}

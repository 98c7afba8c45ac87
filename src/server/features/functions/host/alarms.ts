/** Alarms of durable objects. A pending alarm needs the process of its environment. */
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

/** Whether a durable object has a pending alarm. Reads the database of each class. */
export const hasAlarms = (data: string): boolean => {
  const root = join(data, "do")
  if (!existsSync(root)) return false
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => basename(name) === metadata)
    .some((name) => hasAlarm(join(root, name)))
}

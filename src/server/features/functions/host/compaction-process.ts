/**
 * Process that gives space of deleted rows back to the disk, for the service that forked it: SQLite
 * keeps it in the file for the next rows. It ends when the files are done.
 */
import { constants, setPriority } from "node:os"
import { DatabaseSync } from "node:sqlite"

// Players come first.
setPriority(constants.priority.PRIORITY_LOW)

for (const file of process.argv.slice(2)) {
  const database = new DatabaseSync(file)
  try {
    // The schema is of the developer, whose expressions need no rights.
    database.exec("pragma trusted_schema = off")
    database.exec("vacuum")
    database.exec("pragma wal_checkpoint(truncate)")
  } finally {
    database.close()
  }
}

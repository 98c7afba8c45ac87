/** `svc functions`. */
import { Command } from "effect/cli"
import { dbCommand, secretsCommand } from "./functions-data.ts"
import { deployCommand, rollbackCommand } from "./functions-deploy.ts"
import { devCommand } from "./functions-dev.ts"
import { filesCommand, kvCommand } from "./functions-entries.ts"
import { initCommand } from "./functions-init.ts"
import { logsCommand } from "./functions-logs.ts"
import { queuesCommand } from "./functions-queues.ts"

export const functionsCommand = Command.make("functions").pipe(
  Command.withDescription("Functions: code of yours that runs in the service"),
  Command.withSubcommands([
    initCommand,
    devCommand,
    deployCommand,
    rollbackCommand,
    logsCommand,
    secretsCommand,
    dbCommand,
    kvCommand,
    filesCommand,
    queuesCommand
  ])
)

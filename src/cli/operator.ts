/** `svc operator`: acts of the operator, who has the database. It starts the program of the service. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { runProgram } from "./service-program.ts"

const program = () => new URL("../server/operator/main.ts", import.meta.url).href

const name = "operator"

/** Runs the program, which has commands and flags of its own, if the words of the command line say so. */
export const operatorWords = (words: ReadonlyArray<string>) =>
  words[0] === name ? words.slice(1) : undefined

/** Runs the program with its words. */
export const runOperator = (words: ReadonlyArray<string>) => runProgram(program, words)

/** The command, for the list of commands; its words are those of the program. */
export const operatorCommand = Command.make(
  name,
  { words: Argument.String("command").pipe(Argument.variadic()) },
  ({ words }) => Effect.asVoid(runOperator(words))
).pipe(
  Command.withDescription(
    "Acts of the operator beside the database: sign-up, developers, credit, runners (--help lists them)"
  )
)

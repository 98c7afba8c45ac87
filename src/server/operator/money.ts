/** Acts of the operator on prepaid money: `operator/main.ts money credit <developer> <cents>`. */
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { creditDeveloper } from "../features/money/operator.ts"

export const moneyCommand = Command.make("money").pipe(
  Command.withDescription("Credit developers who pay in another way"),
  Command.withSubcommands([
    Command.make(
      "credit",
      {
        developer: Argument.String("developer").pipe(
          Argument.withDescription("The id or email address of the developer")
        ),
        cents: Argument.Int("cents").pipe(Argument.withDescription("The amount in cents")),
        reason: Flag.String("reason").pipe(
          Flag.withDefault("Credit"),
          Flag.withDescription("For the developer, in the ledger")
        ),
        reference: Flag.String("reference").pipe(
          Flag.optional,
          Flag.withDescription("A credit with this reference is given once to this developer")
        )
      },
      Effect.fnUntraced(function* (input) {
        const reference = Option.getOrUndefined(input.reference)
        const isNew = yield* creditDeveloper({ ...input, reference })
        yield* Console.log(
          isNew
            ? `${input.developer} is credited with ${input.cents} cents.`
            : `The credit ${reference ?? ""} was given before.`
        )
      })
    ).pipe(Command.withDescription("Credit a developer, by id or email address"))
  ])
)

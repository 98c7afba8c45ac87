/**
 * Time of the next run of a cron. The code is loaded when needed, since the rules of crons are as
 * large as a view.
 */
import { Cron, DateTime, Option, Result } from "effect"
import { tick } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { Time } from "../../parts/basics.tsx"

/** Returns the next run, or undefined. The deployment refuses a cron that never runs. */
const nextOf = (cron: string): string | undefined =>
  Result.getSuccess(Cron.parse(cron, "UTC")).pipe(
    Option.flatMap((parsed) => Option.liftThrowable(() => Cron.next(parsed))()),
    Option.flatMap(DateTime.make),
    Option.map(DateTime.formatIso),
    Option.getOrUndefined
  )

const NextRun = ({ cron }: { readonly cron: string }) => {
  void tick.value
  const next = nextOf(cron)
  if (next === undefined) return null
  return (
    <span class="soft small">
      {texts.functions.next} <Time at={next} />
    </span>
  )
}

export default NextRun

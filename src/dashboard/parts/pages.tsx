/** A list that comes page by page: the first page, and a button for each further one. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { texts } from "../core/texts.ts"
import { Button } from "./basics.tsx"
import { useAction } from "./form.tsx"
import { Failure } from "./load-states.tsx"

/** The pages read so far; `reset` goes back to the first. */
interface Pages<Page> {
  readonly pages: ReadonlyArray<Page>
  /** Button for a further page, if there is one, and the reason of a failed read. */
  readonly more: ComponentChildren
  readonly reset: () => void
}

export const usePages = <Page, Cursor>(
  first: Page,
  cursorOf: (page: Page) => Cursor | null,
  read: (cursor: Cursor) => Promise<Page>
): Pages<Page> => {
  const [further, setFurther] = useState<ReadonlyArray<Page>>([])
  const cursor = cursorOf(further.at(-1) ?? first)
  const { busy, error, run } = useAction(async () => {
    if (cursor !== null) setFurther([...further, await read(cursor)])
  })
  const more = (
    <>
      {error !== undefined && <Failure error={error} />}
      {cursor !== null && (
        <div class="more">
          <Button disabled={busy} onClick={run}>
            {texts.players.more}
          </Button>
        </div>
      )}
    </>
  )
  return { pages: [first, ...further], more, reset: () => setFurther([]) }
}

/** Log lines of functions as they come, with filters. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { FunctionsLogLine } from "#rpc/functions/responses"
import { ApiError, askLines } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { exactTime } from "../../core/time.ts"
import { Choice, Field } from "../../parts/form.tsx"
import { useCurrentView } from "../../parts/current-view.ts"
import { Empty, Failure, Skeleton } from "../../parts/load-states.tsx"
import { Button, Panel } from "../../parts/basics.tsx"

const { functions: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/functions/logs"

/** Lines that the page keeps. */
const linesMax = 1000

const retryMillis = 2000

/** Pause between responses, since a busy service ends them early. */
const betweenMillis = 1000

interface Tail {
  /** Log lines; undefined until the first response. */
  readonly lines: ReadonlyArray<FunctionsLogLine> | undefined
  readonly error: ApiError | undefined
}

const pauseFor = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

/**
 * Streams the logs. A response ends after a minute; the next one continues behind its last line.
 */
const useTail = (paused: boolean): Tail & { readonly retry: () => void } => {
  const { env, params, project } = useCurrentView()
  const [tail, setTail] = useState<Tail>({ lines: undefined, error: undefined })
  const last = useRef<string | undefined>(undefined)
  const [round, setRound] = useState(0)
  useEffect(() => {
    if (paused) return
    const stop = new AbortController()
    const { signal } = stop
    const take = (texts: ReadonlyArray<string>) => {
      if (signal.aborted) return
      const fresh = texts.map((text) => JSON.parse(text) as FunctionsLogLine)
      last.current = fresh.at(-1)?.id ?? last.current
      setTail(({ lines = [] }) => ({
        lines: [...lines, ...fresh].slice(-linesMax),
        error: undefined
      }))
    }
    const read = (follow: "true" | "false") =>
      askLines(route, { params, query: { after: last.current, follow, limit: 200 }, signal }, take)
    const follow = async () => {
      // The first lines come without waiting for new ones.
      await read("false")
      take([])
      while (!signal.aborted) {
        await read("true")
        await pauseFor(betweenMillis)
      }
    }
    const run = async () => {
      while (!signal.aborted) {
        const failure: unknown = await follow().catch((error: unknown) => error)
        if (signal.aborted) return
        const error = failure instanceof ApiError ? failure : new ApiError(0, undefined, undefined)
        setTail(({ lines }) => ({ lines, error }))
        await pauseFor(retryMillis)
      }
    }
    void run()
    return () => stop.abort()
  }, [project.id, env, paused, round])
  return { ...tail, retry: () => setRound(round + 1) }
}

const kinds = { debug: "soft", info: "", warn: "warning", error: "problem" } as const

const Lines = ({ lines }: { readonly lines: ReadonlyArray<FunctionsLogLine> }) => {
  const element = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  useEffect(() => {
    if (atEnd.current) element.current?.scrollTo({ top: element.current.scrollHeight })
  }, [lines.at(-1)?.id])
  return (
    <div
      class="frames logs"
      ref={element}
      tabIndex={0}
      role="log"
      aria-label={own.logs}
      onScroll={({ currentTarget: { clientHeight, scrollHeight, scrollTop } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40
      }}
    >
      {lines.length === 0 && <p>{own.noMatch}</p>}
      {lines.map(({ at, id, level, message, version }) => (
        <p key={id} class={kinds[level]}>
          <time dateTime={at} title={exactTime(at)}>
            {at.slice(11, 23)}
          </time>{" "}
          {own.levels[level]} {own.lineVersion(version)} {message}
        </p>
      ))}
    </div>
  )
}

const levels = ["debug", "info", "warn", "error"] as const

export const Logs = () => {
  const [paused, setPaused] = useState(false)
  const [level, setLevel] = useState("")
  const [filter, setFilter] = useState("")
  const { error, lines, retry } = useTail(paused)
  const state = paused ? "waiting" : error === undefined ? "live" : "stale"
  const shown = lines?.filter(
    (line) => (level === "" || line.level === level) && line.message.includes(filter)
  )
  return (
    <Panel
      title={own.logs}
      lead={own.logsLead}
      actions={
        <span class="live-mark">
          <i class={`dot ${state}`} />{" "}
          {paused ? own.paused : error === undefined ? own.follows : own.reconnects}
        </span>
      }
    >
      {error !== undefined && <Failure error={error} retry={retry} />}
      {lines === undefined && error === undefined && <Skeleton />}
      {lines?.length === 0 && <Empty title={own.noLogs} text={own.noLogsText} />}
      {lines !== undefined && lines.length > 0 && (
        <>
          <div class="body row frame-tools">
            <Choice
              label={own.level}
              value={level}
              options={[["", own.allLevels], ...levels.map((it) => [it, own.levels[it]] as const)]}
              onChoose={setLevel}
            />
            <Field label={own.filter} value={filter} onValue={setFilter} autocomplete="off" />
            <Button pressed={paused} onClick={() => setPaused(!paused)}>
              {paused ? own.resume : own.pause}
            </Button>
          </div>
          <Lines lines={shown ?? []} />
        </>
      )}
    </Panel>
  )
}

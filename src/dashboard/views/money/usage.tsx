/** Usage of a month, and its cost. */
import { ask, type Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { lastMonths } from "../../core/time.ts"
import { cents, microUsd } from "../../parts/amounts.ts"
import { Choice, useAction } from "../../parts/form.tsx"
import { useLoad } from "../../parts/load.ts"
import { useQueryValue } from "../../parts/current-view.ts"
import { Failure, Loaded } from "../../parts/load-states.tsx"
import { bytes, count, Panel, Time } from "../../parts/basics.tsx"

const { money: own } = texts

export const usageRoute = "GET /v1/money/usage"
type Report = Response<typeof usageRoute>
type Component = Report["components"][number]

const monthsShown = 12

const quantityOf = ({ quantity, unit }: Component): string =>
  unit === "bytes" ? bytes(quantity) : `${count(quantity)} ${unit}`

const Table = ({ report }: { readonly report: Report }) => (
  <div class="table-wrap" tabIndex={0}>
    <table>
      <thead>
        <tr>
          <th scope="col">{own.component}</th>
          <th scope="col" class="number">
            {own.quantity}
          </th>
          <th scope="col" class="number">
            {own.cost}
          </th>
        </tr>
      </thead>
      <tbody>
        {report.components.map((component) => (
          <tr key={component.component}>
            <td>{own.components[component.component] ?? component.component}</td>
            <td class="number">{quantityOf(component)}</td>
            <td class="number">{microUsd(component.microUsd)}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{own.total}</th>
          <td />
          <td class="number">
            <strong>{microUsd(report.totalMicroUsd)}</strong>
          </td>
        </tr>
        {report.carriedMicroUsd > 0 && (
          <tr>
            <th scope="row">{own.carried}</th>
            <td />
            <td class="number">{microUsd(report.carriedMicroUsd)}</td>
          </tr>
        )}
        <tr>
          <th scope="row">{own.chargedRow}</th>
          <td />
          <td class="number">
            {report.estimate ? (
              <span class="soft">{own.estimate}</span>
            ) : (
              <strong>{cents(report.chargedCents)}</strong>
            )}
          </td>
        </tr>
      </tfoot>
    </table>
  </div>
)

export const Usage = () => {
  const [period, setPeriod] = useQueryValue("month")
  const load = useLoad(`usage/${period}`, (signal) =>
    ask(usageRoute, { query: { period }, signal })
  )
  const { busy, error, run } = useAction(async () => {
    await ask(usageRoute, { query: { period, refresh: "true" } })
    load.refresh()
  })
  const [current = "", ...before] = lastMonths(monthsShown)
  return (
    <Panel
      title={own.usage}
      lead={own.usageLead}
      actions={
        <>
          <Choice
            label={own.month}
            hideLabel
            value={period}
            options={[["", current], ...before.map((month) => [month, month] as const)]}
            onChoose={setPeriod}
          />
          <button type="button" class="button" disabled={busy} onClick={() => void run()}>
            {own.refresh}
          </button>
        </>
      }
    >
      {error !== undefined && <Failure error={error} />}
      <Loaded of={load}>
        {(report) =>
          report.components.length === 0 ? (
            <p class="body soft">{own.noUsage}</p>
          ) : (
            <>
              <Table report={report} />
              <p class="body rule soft small">
                {own.asOf} <Time at={report.refreshedAt} />
              </p>
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}

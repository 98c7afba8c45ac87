/** Which texts of SQL have more than one statement. */
import { assert, describe, it } from "@effect/vitest"
import { hasSeveralStatements } from "#server/features/functions/statements"

const trigger =
  "create trigger a after insert on t begin update t set b = case when 1 then 2 end; delete from u; end"

describe("a text of SQL", () => {
  it("counts one statement of SQL, whatever its quotes, comments and triggers hold", () => {
    const texts = [
      "",
      ";;",
      "select 1",
      "select 1;",
      "select 1 ; -- and; more\n /* ; select 2 */ ;",
      "select ';', \"a;b\", [c;d], `e;f` from t",
      "select 'it''s; fine'",
      "select '; select 2",
      trigger,
      `${trigger};`,
      "CREATE /* ; */ TEMP TRIGGER a after delete on t BEGIN select 1; END;",
      "with a as (select 1) select * from a"
    ]
    for (const text of texts) assert.isFalse(hasSeveralStatements(text), text)
  })

  it("finds several statements of SQL, also after comments, quotes and triggers", () => {
    const texts = [
      "select 1; select 2",
      "select 1;select 2;",
      "/*;*/ insert into t values (1); drop table t",
      "select ';'; select 2",
      "select 1; -- note\ndrop table t",
      `${trigger}; drop table t`,
      "create table trigger_log (a); drop table t"
    ]
    for (const text of texts) assert.isTrue(hasSeveralStatements(text), text)
  })
})

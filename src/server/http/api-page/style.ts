/** Style sheet and script of the API page. Both are inline, so the page needs no other request. */
import { themeScript, tokens } from "../look/tokens.ts"

export const style = `
${tokens}
body{display:grid;grid-template-columns:17rem minmax(0,1fr)}
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1rem;border-right:1px solid var(--line)}
nav ul{list-style:none;margin:0 0 1rem;padding:0}
nav a{display:block;padding:.15rem 0;text-decoration:none}
main{padding:1rem clamp(1rem,4vw,3rem) 4rem;max-width:60rem}
h2{margin-top:3rem}
h3{margin:1.5rem 0 .25rem}
details h3{font-size:1rem;margin-top:1rem}
input{width:100%;padding:.5rem}
details{border:1px solid var(--line);border-radius:6px;margin:.4rem 0;padding:0 .75rem}
summary{cursor:pointer;padding:.5rem 0;overflow-wrap:anywhere}
summary span{color:var(--quiet)}
details[open]{padding-bottom:.75rem}
summary b{display:inline-block;min-width:4.2rem;font-size:.8rem}
.get{color:var(--green)}
.post{color:var(--link)}
.put,.patch{color:var(--amber)}
.delete{color:var(--red)}
pre{margin:.5rem 0}
pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
pre i{color:var(--quiet)}
.menu{display:none}
@media(max-width:50rem){
body{display:block}
nav{position:static;height:auto;border:0;border-bottom:1px solid var(--line)}
nav div{display:none}
.menu{display:block;margin-top:.5rem}
.menu:checked~div{display:block}
summary b{min-width:0}
}`

/** Opens what a link leads to, filters by the text in the search field, and lets keys scroll what is wide. */
export const script = `${themeScript}
const reveal=()=>{
const target=document.getElementById(decodeURIComponent(location.hash.slice(1)));
if(target){if(target.tagName==="DETAILS")target.open=true;target.scrollIntoView()}
};
addEventListener("hashchange",reveal);
reveal();
for(const box of document.querySelectorAll("pre,.wide"))box.tabIndex=0;
const search=document.querySelector("input[type=search]");
const blocks=[...document.querySelectorAll("main details")].map(block=>
[block,block.querySelector("summary").textContent.toLowerCase()]);
search.addEventListener("input",()=>{
const words=search.value.toLowerCase().split(/\\s+/);
for(const [block,text] of blocks)block.hidden=!words.every(word=>text.includes(word));
for(const part of document.querySelectorAll("main section"))
part.hidden=search.value!==""&&!part.querySelector("details:not([hidden])");
});`

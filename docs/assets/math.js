// Sets the formulas that Markdown left as \\(...\\) and \\[...\\], with the KaTeX beside this file.
document$.subscribe(() => {
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    katex.render(text.slice(2, -2), node, { displayMode: text.startsWith("\\["), throwOnError: false });
    const [before, after] = [node.previousSibling, node.nextSibling];
    const open = before?.nodeType === Node.TEXT_NODE ? before.data.match(/[(\[]*$/)[0] : "";
    const close = after?.nodeType === Node.TEXT_NODE ? after.data.match(/^[)\].,;:?]*/)[0] : "";
    if (open + close && node.querySelectorAll(".base").length === 1) { // a line does not begin with a comma
      const whole = document.createElement("span");
      whole.style.whiteSpace = "nowrap";
      node.replaceWith(whole);
      if (open) before.data = before.data.slice(0, -open.length);
      if (close) after.data = after.data.slice(close.length);
      whole.append(open, node, close);
    }
  }
});

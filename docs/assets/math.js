// Sets the formulas that Markdown left as \\(...\\) and \\[...\\], with the KaTeX beside this file.
document$.subscribe(() => {
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    katex.render(text.slice(2, -2), node, { displayMode: text.startsWith("\\["), throwOnError: false });
  }
});

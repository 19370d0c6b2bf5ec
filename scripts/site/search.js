/** Searches the site in the page itself: the index is a script, since pages opened as files cannot fetch. */
(() => {
  const { MiniSearch, SEARCH_INDEX, SEARCH_OPTIONS } = globalThis;
  const form = document.querySelector('form[role=search]');
  const input = form.querySelector('input');
  const found = document.querySelector('#found');
  const { root } = form.dataset;
  const MOST = 12;
  /** Records of decisions and changes follow the pages that say what holds now. */
  const boostDocument = (id, term, { url }) => (/decisions\/|^C[A-Z]+\./.test(url) ? 0.3 : 1);
  let index;

  function element(name, text) {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  }

  function item({ url, title, page, excerpt }) {
    const li = document.createElement('li');
    const link = element('a', title === page ? page : `${page}: ${title}`);
    link.href = root + url;
    li.append(link, element('small', excerpt));
    return li;
  }

  function search() {
    const query = input.value.trim();
    found.hidden = query === '';
    if (query === '') return;
    index ??= MiniSearch.loadJS(SEARCH_INDEX, SEARCH_OPTIONS);
    const results = index.search(query, { boostDocument });
    const list = document.createElement('ol');
    list.append(...results.slice(0, MOST).map(item));
    const count = results.length === 0 ? 'Nothing found' : `${results.length} found`;
    found.replaceChildren(element('p', `${count}: ${query}`), list);
  }

  form.hidden = false;
  input.addEventListener('input', search);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    found.querySelector('a')?.click();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === '/' && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
    if (event.key === 'Escape' && document.activeElement === input) {
      input.value = '';
      search();
    }
  });
  input.value = new URLSearchParams(location.search).get('q') ?? '';
  search();
})();

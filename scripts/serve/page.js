// What the page of curlew serve does besides: buttons that copy, and a note when the result is no longer what is chosen.
// Everything else works without it.
for (const block of document.querySelectorAll('.copy pre')) {
  if (navigator.clipboard === undefined) break;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copier';
  button.textContent = 'Copy';
  button.setAttribute('aria-label', `Copy: ${block.getAttribute('aria-label')}`);
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(block.textContent).then(() => {
      button.textContent = 'Copied';
    });
  });
  block.after(button);
}

// An empty field is no choice: the address stays short.
document.querySelector('form')?.addEventListener('formdata', ({ formData }) => {
  const empty = new Set();
  for (const [name, value] of formData) if (value === '') empty.add(name);
  for (const name of empty) formData.delete(name);
});

const result = document.querySelector('#result');
document.querySelector('form')?.addEventListener('change', (event) => {
  if (result === null || result.dataset.stale !== undefined || event.target.name === '_find') return;
  result.dataset.stale = '';
  const note = document.createElement('p');
  note.className = 'stale';
  note.setAttribute('role', 'status');
  note.textContent = 'The choice has changed: press “Update the installer” to see what it becomes.';
  result.prepend(note);
});

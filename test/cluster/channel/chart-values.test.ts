import { chartValues } from '../../../src/cluster/channel/chart-values.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/chart-values');

const ENTRY = { name: 'web', namespace: 'sites', version: '1.2.0', id: '' };
const CLUSTER = { server: 'https://10.0.0.1:6443', version: 'v1.31.2', kubernetes: [1, 31, 2] as const };

function rendered(values: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return chartValues({ values }, ENTRY, CLUSTER);
}

test('texts in the values of a chart are templates over the facts of the cluster and the add-on', () => {
  const values = {
    host: '{{ .Cluster.server }}',
    kubectl: { tag: '{{ .Cluster.kubernetes.version }}', args: ['--minor={{ .Cluster.kubernetes.minor }}', 2, true] },
    label: '{{ .Addon.name | upper }}-{{ .Addon.version }}',
    hpa: '{{ if ge .Cluster.kubernetes.minor 23 }}autoscaling/v2{{ else }}autoscaling/v2beta2{{ end }}',
    plain: 'a {b} c',
  };
  assert.equal(rendered(values), {
    host: 'https://10.0.0.1:6443',
    kubectl: { tag: 'v1.31.2', args: ['--minor=31', 2, true] },
    label: 'WEB-1.2.0',
    hpa: 'autoscaling/v2',
    plain: 'a {b} c',
  });
});

test('values of other types stay as they are, also nulls and integers beyond 2^53', () => {
  const values = { cpu: null, list: [null, 1.5], uid: 9007199254740993n, on: true };
  assert.equal(rendered(values), values);
});

/** Why these values cannot be rendered. */
function failure(values: Readonly<Record<string, unknown>>): string {
  try {
    rendered(values);
  } catch (error) {
    const { message, hint } = error as Error & { readonly hint?: string };
    return `${message}; ${hint}`;
  }
  return 'rendered';
}

test('a value that cannot be rendered is named with its path', () => {
  const fails = (value: string): string => failure({ image: { tags: ['ok', value] } });
  const start = 'cannot render the values of web 1.2.0: image.tags[1]: ';
  assert.is(fails('{{ .Cluster.kubernets.minor }}'), `${start}unknown field .kubernets; did you mean .kubernetes?`);
  assert.match(fails('{{ .Values.x }}'), `${start}unknown field .Values`);
  assert.match(fails('{{ if }}'), start);
  assert.match(fails('{{ env "HOME" }}'), start);
});

/** Each would take all memory, or hours. */
const EXCESSIVE: Readonly<Record<string, string>> = {
  cat: '{{ $x := "x" }}{{ range until 100 }}{{ $x = cat $x $x }}{{ end }}',
  print: '{{ $x := "x" }}{{ range until 100 }}{{ $x = print $x $x }}{{ end }}',
  printf: '{{ $x := "x" }}{{ range until 100 }}{{ $x = printf "%s%s" $x $x }}{{ end }}',
  quote: '{{ $x := "x" }}{{ range until 100 }}{{ $x = quote $x $x }}{{ end }}',
  'a list in lists': '{{ $x := list "x" }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ $x }}',
  'a condition on lists':
    '{{ $x := list "x" }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ if $x }}a{{ end }}',
  dict: '{{ $x := dict }}{{ range until 100 }}{{ $x = dict "a" $x "b" $x }}{{ end }}{{ $x }}',
  concat: '{{ $x := list "x" }}{{ range until 100 }}{{ $x = concat $x $x }}{{ end }}',
  'deep lists':
    '{{ $x := list }}{{ range until 9999 }}{{ $x = list $x }}{{ $x = list $x }}{{ $x = list $x }}{{ end }}{{ $x }}',
  join: '{{ $gap := repeat 9000 "x" }}{{ join $gap (until 9000) }}',
  replace: '{{ $x := repeat 900000 "x" }}{{ replace "" $x $x }}',
  nindent: '{{ nindent 200 (repeat 900000 "\n") }}',
  repeat: '{{ repeat 999999999 "xx" }}',
  without: `{{ $x := until 9999 }}{{ range until 9999 }}{{ $y := without $x ${'1 '.repeat(999)} }}{{ end }}`,
  sortAlpha: '{{ $x := until 9999 }}{{ range until 9999 }}{{ $y := sortAlpha $x }}{{ end }}',
};

for (const [title, value] of Object.entries(EXCESSIVE)) {
  test(`a template that would make too much ends soon, and as an error of its value: ${title}`, () => {
    const began = performance.now();
    assert.match(failure({ a: value }), /cannot render the values of web 1\.2\.0: a: /);
    assert.ok(performance.now() - began < 20_000);
  });
}

test('many values share one budget', () => {
  const work = '{{ $x := until 9999 }}{{ range until 99 }}{{ $y := sortAlpha $x }}{{ end }}';
  assert.equal(rendered({ a: work }), { a: '' });
  assert.match(failure({ a: Array.from({ length: 100 }, () => work) }), 'needs too much work');
});

test('what functions make is charged, also if nothing looks at it', () => {
  assert.match(failure({ a: '{{ range until 9999 }}{{ $x := until 9999 }}{{ end }}' }), 'needs too much work');
  assert.match(failure({ a: '{{ replace "" "" (repeat 99999 "a") }}' }), 'replace: more than 10000 characters');
  assert.equal(rendered({ a: '{{ replace "" "-" "a😀" }} {{ replace "a" "$&" "banana" }}' }), {
    a: '-a-😀- b$&n$&n$&',
  });
});

test('zeros are between the sign of a number and its digits', () => {
  assert.equal(rendered({ a: '{{ printf "%05d %05.1f %05d" -3 -2.5 7 }}' }), { a: '-0003 -02.5 00007' });
});

test.run();

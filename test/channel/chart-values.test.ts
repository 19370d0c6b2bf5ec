import { chartValues } from '../../src/channel/chart-values.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('channel/chart-values');

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

test('a value that cannot be rendered is named with its path', () => {
  const fails = (value: string): string => {
    try {
      rendered({ image: { tags: ['ok', value] } });
    } catch (error) {
      const { message, hint } = error as Error & { readonly hint?: string };
      return `${message}; ${hint}`;
    }
    return 'rendered';
  };
  const start = 'cannot render the values of web 1.2.0: image.tags[1]: ';
  assert.is(fails('{{ .Cluster.kubernets.minor }}'), `${start}unknown field .kubernets; did you mean .kubernetes?`);
  assert.match(fails('{{ .Values.x }}'), `${start}unknown field .Values`);
  assert.match(fails('{{ if }}'), start);
  assert.match(fails('{{ env "HOME" }}'), start);
});

test.run();

/** Requests about clusters that are described in files. */
import { paths } from '../core/field.ts';
import { request } from '../core/request.ts';

export const CLUSTER_DIFF = request('cluster diff', 'Show what differs between two clusters in files', {
  files: paths('A B', 'two files with one cluster each', {
    operand: true,
    required: 'specify the files of two clusters',
  }),
});

(** Rows, tables, neighbours, statistics, and the norm in which the mechanism measures a change.

    With the first lines of [Sums.v], and [Formulas.v], this is all that a reader of [Theorems.v]
    needs. *)

Require Import Reals List Permutation.
From Tacit Require Import Sums Formulas.
Import ListNotations.
Local Open Scope R_scope.

(** An encoded row: a vector, of which the first d entries count, and a response. *)
Record row := { x : vector; y : R }.
Definition legal (d : nat) (X Y : R) (r : row) : Prop := norm d (x r) <= X /\ Rabs (y r) <= Y.

(** Neighbouring tables, whatever a table's entries are; the order of entries does not matter. *)
Definition replace_one {A : Type} (D D' : list A) : Prop :=
  exists a a' rest, Permutation D (a :: rest) /\ Permutation D' (a' :: rest).
Definition add_remove {A : Type} (D D' : list A) : Prop :=
  exists a, Permutation D (a :: D') \/ Permutation D' (a :: D).
Definition neighbours {A : Type} (rel : relation) : list A -> list A -> Prop :=
  match rel with ReplaceOne => replace_one | AddRemove => add_remove end.

(** What is published, before noise. *)
Record statistics := { xtx : nat -> nat -> R; xty : vector; yty : R; count : R; eigenvalue : R }.

(** Sums over rows. [n] and the eigenvalue are given: persons are counted, not rows, and eigenvalues
    are not sums. *)
Definition sums (rows : list row) (n l : R) : statistics := {|
  xtx := fun i k => total (fun r => x r i * x r k) rows;
  xty := fun i => total (fun r => y r * x r i) rows;
  yty := total (fun r => y r * y r) rows;
  count := n;
  eigenvalue := l;
|}.
Definition of_rows (D : list row) (l : R) : statistics := sums D (INR (length D)) l.

(** A person is all of its rows together, each divided by √m where there are m. *)
Definition of_persons (D : list (list row)) (l : R) : statistics :=
  sums (concat D) (INR (length D)) l.
Definition shrunk (f : R) (r : row) : row := {| x := fun i => f * x r i; y := f * y r |}.
Definition mean_person (rows : list row) : list row :=
  map (shrunk (/ sqrt (INR (length rows)))) rows.
Definition legal_person (d : nat) (X Y : R) (rows : list row) : Prop :=
  sqrt (total (fun r => dot d (x r) (x r)) rows) <= X
  /\ sqrt (total (fun r => y r * y r) rows) <= Y.

(** The smallest eigenvalue of X'X is the least u'X'Xu of vectors of length 1; a solver may err by
    X²/1024. *)
Definition quadratic (d : nat) (M : nat -> nat -> R) (u : vector) : R :=
  below d (fun i => below d (fun k => u i * M i k * u k)).
Definition smallest_eigenvalue (d : nat) (M : nat -> nat -> R) (l : R) : Prop :=
  (exists u, norm d u = 1 /\ quadratic d M u = l)
  /\ (forall u, norm d u = 1 -> l <= quadratic d M u).
Definition solved (d : nat) (X : R) (s : statistics) : Prop :=
  exists l, smallest_eigenvalue d (xtx s) l /\ Rabs (eigenvalue s - l) <= X * X / 1024.

(** The change in the norm of the theorem: X'X by its Frobenius norm, the other parts weighted. *)
Definition change_squared (d : nat) (p : weights reals) (s s' : statistics) : R :=
  below d (fun i => below d (fun k => Rsqr (xtx s i k - xtx s' i k)))
  + Rsqr (w p) * below d (fun i => Rsqr (xty s i - xty s' i))
  + Rsqr (v p) * Rsqr (yty s - yty s')
  + Rsqr (c p) * Rsqr (count s - count s')
  + Rsqr (e p) * Rsqr (eigenvalue s - eigenvalue s').
Definition change (d : nat) (p : weights reals) (s s' : statistics) : R :=
  sqrt (change_squared d p s s').

(** Several responses: a row's vector with k numbers, of which [single] j keeps the j-th alone. X'X,
    n and the eigenvalue are there once, X'y and y'y for each response. *)
Record answered := { features : vector; answers : vector }.
Definition single (j : nat) (r : answered) : row := {| x := features r; y := answers r j |}.
Definition of_answers (D : list (list answered)) (l : R) (j : nat) : statistics :=
  of_persons (map (map (single j)) D) l.
Definition joint_squared (d k : nat) (p : weights reals) (s s' : nat -> statistics) : R :=
  below d (fun i => below d (fun m => Rsqr (xtx (s 0%nat) i m - xtx (s' 0%nat) i m)))
  + below k (fun j => Rsqr (w p) * below d (fun i => Rsqr (xty (s j) i - xty (s' j) i)))
  + below k (fun j => Rsqr (v p) * Rsqr (yty (s j) - yty (s' j)))
  + Rsqr (c p) * Rsqr (count (s 0%nat) - count (s' 0%nat))
  + Rsqr (e p) * Rsqr (eigenvalue (s 0%nat) - eigenvalue (s' 0%nat)).
(** [sensitivity.py]: the weights at which one response stands for k. *)
Definition as_one (k : nat) (p : weights reals) : weights reals :=
  Build_weights reals (sqrt (INR k) * w p) (sqrt (INR k) * v p) (c p) (e p).

(** The mechanism: a standard deviation for each published number, [None] where a part is not
    published. X'X is published as its upper triangle. [shift] is the change in units of noise: the
    mechanism's μ. *)
Record noise := {
  sd_diagonal : R;
  sd_off_diagonal : R;
  sd_xty : R;
  sd_yty : option R;
  sd_count : option R;
  sd_eigenvalue : option R;
}.
Definition part (sd : option R) (a a' : R) : R :=
  match sd with None => 0 | Some sd => Rsqr ((a - a') / sd) end.
Definition shift (d : nat) (n : noise) (s s' : statistics) : R :=
  sqrt (below d (fun k => Rsqr ((xtx s k k - xtx s' k k) / sd_diagonal n))
        + below d (fun k => below k (fun i => Rsqr ((xtx s i k - xtx s' i k) / sd_off_diagonal n)))
        + below d (fun i => Rsqr ((xty s i - xty s' i) / sd_xty n))
        + part (sd_yty n) (yty s) (yty s')
        + part (sd_count n) (count s) (count s')
        + part (sd_eigenvalue n) (eigenvalue s) (eigenvalue s')).

(** [mechanism.py]: noise of multiplier times the sensitivity, over the weight of each part; off the
    diagonal 1/√2 of it is enough. *)
Definition enough (needed weight : R) (sd : option R) : Prop :=
  match sd with None => True | Some sd => 0 < sd /\ needed <= weight * sd end.
Definition calibrated (multiplier delta : R) (p : weights reals) (n : noise) : Prop :=
  let needed := multiplier * delta in
  enough needed 1 (Some (sd_diagonal n)) /\
  enough needed (sqrt 2) (Some (sd_off_diagonal n)) /\
  enough needed (w p) (Some (sd_xty n)) /\
  enough needed (v p) (sd_yty n) /\
  enough needed (c p) (sd_count n) /\
  enough needed (e p) (sd_eigenvalue n).

(** Averaging: an order of the rows is cut into groups of k, the last perhaps smaller; the sum of a
    group, over √k, takes a row's place. *)
Inductive dealt (k : nat) : list row -> list (list row) -> Prop :=
| dealt_none : dealt k [] []
| dealt_last g : (0 < length g <= k)%nat -> dealt k g [g]
| dealt_full g order groups :
  length g = k -> dealt k order groups -> dealt k (g ++ order) (g :: groups).
Definition joined (g : list row) : row :=
  {| x := fun i => total (fun r => x r i) g; y := total y g |}.
Definition averaged (k : nat) (groups : list (list row)) : list row :=
  map (fun g => shrunk (/ sqrt (INR k)) (joined g)) groups.
Definition of_groups (k : nat) (groups : list (list row)) (n l : R) : statistics :=
  sums (averaged k groups) n l.

(** Orders of neighbouring tables, coupled: an exchanged row keeps its place; where one leaves, the
    last of all takes its place. *)
Inductive coupled : relation -> list row -> list row -> Prop :=
| exchanged before r r' after : coupled ReplaceOne (before ++ r :: after) (before ++ r' :: after)
| left_a_gap before r after last :
  coupled AddRemove (before ++ r :: after ++ [last]) (before ++ last :: after)
| left_the_end before r : coupled AddRemove (before ++ [r]) before.

(** Any statistic that is a sum over rows: [f a i] is the i-th number that [a] contributes, with its
    weight. A person contributes the mean of what its rows would. *)
Section Contributions.
Context {A I : Type} (indices : list I) (f : A -> I -> R).
Definition size (z : I -> R) : R := sqrt (total (fun i => Rsqr (z i)) indices).
Definition apart (z z' : I -> R) : R := size (fun i => z i - z' i).
Definition gathered (D : list A) : I -> R := fun i => total (fun a => f a i) D.
Definition mean (rows : list A) : I -> R :=
  fun i => / INR (length rows) * total (fun a => f a i) rows.
Definition gathered_means (D : list (list A)) : I -> R := fun i => total (fun rows => mean rows i) D.
End Contributions.

(** Where values lie: a row has K values in [−1, 1], or is incomplete and adds nothing; the number of
    complete rows with its weight and, for each column, Σu, and Σu² with its weight. *)
Definition values := option (nat -> R).
Definition in_range (K : nat) (r : values) : Prop :=
  match r with None => True | Some u => forall j, (j < K)%nat -> Rabs (u j) <= 1 end.
Inductive power := First | Second.
Definition all_places (K : nat) : list (option (nat * power)) :=
  None :: map Some (list_prod (seq 0 K) [First; Second]).
Definition places (K : nat) (r : values) (index : option (nat * power)) : R :=
  match r with
  | None => 0
  | Some u => match index with
              | None => sqrt (places_count_weight_squared reals (INR K))
              | Some (j, First) => u j
              | Some (j, Second) => sqrt (places_square_weight_squared reals) * (u j * u j)
              end
  end.

(** x·clip(y − x'θ, ±C/‖x‖): the gradient of a row, its residual cut so that its length is at most C,
    the corrections of a later visit. *)
Definition clip (bound r : R) : R := Rmax (- bound) (Rmin bound r).
Definition clipped_gradient (d : nat) (C : R) (theta : vector) (r : row) : vector :=
  fun i => clip (C / norm d (x r)) (y r - dot d (x r) theta) * x r i.

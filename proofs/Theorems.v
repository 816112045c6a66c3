(** The theorems, for a reader of [Formulas.v] and [Model.v]. Proofs are in the other files. *)

Require Import Reals Lra Psatz List Permutation.
From Tacit Require Import Sums Formulas Model Blocks Tables Responses Witnesses Contributions Persons Places
  Clipped Noise Averaging AveragedWitnesses FreeSquare.
Import ListNotations.
Local Open Scope R_scope.

(** * Rows

    Neighbouring tables of legal rows, under either relation, with any weights: X'X, X'y, y'y, n,
    and the smallest eigenvalue as a solver returns it. *)
Theorem sensitivity_of_rows (rel : relation) (d : nat) (X Y : R) (p : weights reals)
  (D D' : list row) (l l' : R) :
  0 < X -> 0 < Y -> (forall r, In r D \/ In r D' -> legal d X Y r) -> neighbours rel D D' ->
  (e p <> 0 -> solved d X (of_rows D l) /\ solved d X (of_rows D' l')) ->
  change d p (of_rows D l) (of_rows D' l') <= sqrt (sensitivity_squared reals rel 1 X Y p).
Proof.
  intros radius bound lawful near. rewrite !rows_as_persons. intros eigenvalues.
  apply units_bound; [exact radius | exact bound | | exact eigenvalues | now apply neighbours_map].
  intros unit [member | member]; apply in_map_iff in member as (r & <- & inside); apply legal_alone;
    auto.
Qed.

(** Some tables move that far: the sensitivity is exact. *)
Theorem replace_one_is_exact (d : nat) (X Y : R) (p : weights reals) :
  (2 <= d)%nat -> 0 < X -> 0 < Y -> e p = 0 ->
  exists D D', (forall r, In r D \/ In r D' -> legal d X Y r) /\ replace_one D D' /\
    change d p (of_rows D 0) (of_rows D' 0) = sqrt (sensitivity_squared reals ReplaceOne 1 X Y p).
Proof. intros. now apply replace_one_attained. Qed.

Theorem add_remove_is_exact (d : nat) (X Y : R) (p : weights reals) :
  (1 <= d)%nat -> 0 < X -> 0 < Y -> e p = 0 ->
  exists D D', (forall r, In r D \/ In r D' -> legal d X Y r) /\ add_remove D D' /\
    change d p (of_rows D 0) (of_rows D' 0) = sqrt (sensitivity_squared reals AddRemove 1 X Y p).
Proof. intros. now apply add_remove_attained. Qed.

(** y'y is free under replace-one up to [free_square_weight], and beyond it is not. *)
Theorem square_is_free (X Y response weight : R) :
  0 < X -> 0 < Y -> Rsqr (response * Y / X) <= 2 ->
  let with_weight v :=
    sensitivity_squared reals ReplaceOne 1 X Y (Build_weights reals response v 0 0) in
  Rsqr weight <= free_square_weight_squared reals X Y response <->
    with_weight weight = with_weight 0.
Proof. apply free_up_to. Qed.

(** * Noise

    Calibrated noise hides every change that the sensitivity allows: in units of noise no table is
    further from its neighbour than 1/multiplier, the μ of the Gaussian mechanism. X'X is published
    as its upper triangle, with less noise off the diagonal. *)
Theorem noise_covers (d : nat) (p : weights reals) (n : noise) (multiplier delta : R)
  (s s' : statistics) :
  0 < multiplier -> 0 < delta ->
  (forall i k, xtx s i k = xtx s k i) -> (forall i k, xtx s' i k = xtx s' k i) ->
  change d p s s' <= delta -> calibrated multiplier delta p n -> shift d n s s' <= / multiplier.
Proof. apply covered. Qed.

(** The two together, for rows. *)
Theorem release_of_rows (rel : relation) (d : nat) (X Y : R) (p : weights reals) (n : noise)
  (multiplier : R) (D D' : list row) (l l' : R) :
  0 < X -> 0 < Y -> 0 < multiplier ->
  (forall r, In r D \/ In r D' -> legal d X Y r) -> neighbours rel D D' ->
  (e p <> 0 -> solved d X (of_rows D l) /\ solved d X (of_rows D' l')) ->
  calibrated multiplier (sqrt (sensitivity_squared reals rel 1 X Y p)) p n ->
  shift d n (of_rows D l) (of_rows D' l') <= / multiplier.
Proof.
  intros radius bound positive lawful near eigenvalues calibration.
  apply (noise_covers d p n multiplier (sqrt (sensitivity_squared reals rel 1 X Y p)));
    [exact positive | | | | | exact calibration].
  - apply sqrt_lt_R0. now apply sensitivity_positive.
  - intros i k. cbn. apply total_ext. intros; ring.
  - intros i k. cbn. apply total_ext. intros; ring.
  - now apply sensitivity_of_rows.
Qed.

(** * Persons

    A table of persons, each all of its rows together; neighbours differ in one person, whatever the
    number of its rows. Any block whose rows have ‖X‖_F and ‖y‖ within the bounds will do. *)
Theorem sensitivity_of_persons (rel : relation) (d : nat) (X Y : R) (p : weights reals)
  (D D' : list (list row)) (l l' : R) :
  0 < X -> 0 < Y ->
  (forall person, In person D \/ In person D' -> legal_person d X Y person) -> neighbours rel D D' ->
  (e p <> 0 -> solved d X (of_persons D l) /\ solved d X (of_persons D' l')) ->
  change d p (of_persons D l) (of_persons D' l') <= sqrt (sensitivity_squared reals rel 1 X Y p).
Proof. intros. now apply units_bound. Qed.

(** With k responses of one weight, X'X published once: as far as one response moves whose X'y and
    y'y have √k times the weight. A row is a person of one. *)
Theorem sensitivity_of_responses (rel : relation) (d k : nat) (X Y : R) (p : weights reals)
  (D D' : list (list answered)) (l l' : R) :
  (0 < k)%nat -> 0 < X -> 0 < Y ->
  (forall person j, In person D \/ In person D' -> (j < k)%nat ->
    legal_person d X Y (map (single j) person)) -> neighbours rel D D' ->
  (e p <> 0 -> solved d X (of_answers D l 0) /\ solved d X (of_answers D' l' 0)) ->
  sqrt (joint_squared d k p (of_answers D l) (of_answers D' l'))
    <= sqrt (sensitivity_squared reals rel 1 X Y (as_one k p)).
Proof.
  intros some radius bound lawful near eigenvalues. apply sqrt_le_1_alt.
  apply responses_bound; [exact some |]. intros j below_k.
  apply sqrt_le_0; [apply change_nonneg | left; now apply sensitivity_positive |].
  apply sensitivity_of_persons; [exact radius | exact bound | | now apply neighbours_map |].
  - intros unit [member | member]; apply in_map_iff in member as (person & <- & inside); auto.
  - intros published. destruct (eigenvalues published). split; now apply one_solution.
Qed.

(** In particular legal rows divided by √m; such a person contributes the mean of what its rows
    would. *)
Theorem sensitivity_of_means (rel : relation) (d : nat) (X Y : R) (p : weights reals)
  (D D' : list (list row)) (l l' : R) :
  0 < X -> 0 < Y ->
  (forall person r, In person D \/ In person D' -> In r person -> legal d X Y r) ->
  neighbours rel D D' ->
  let s := of_persons (map mean_person D) l in
  let s' := of_persons (map mean_person D') l' in
  (e p <> 0 -> solved d X s /\ solved d X s') ->
  change d p s s' <= sqrt (sensitivity_squared reals rel 1 X Y p).
Proof.
  intros radius bound lawful near s s' eigenvalues.
  apply units_bound; [exact radius | exact bound | | exact eigenvalues | now apply neighbours_map].
  intros unit [member | member]; apply in_map_iff in member as (rows & <- & inside);
    (apply mean_legal; [lra | lra |]; intros r; apply lawful; auto).
Qed.

Theorem mean_of_rows (rows : list row) (i k : nat) :
  rows <> [] ->
  let one := sums rows 0 0 in
  let mean := sums (mean_person rows) 0 0 in
  let m := INR (length rows) in
  xtx mean i k = xtx one i k / m /\ xty mean i = xty one i / m /\ yty mean = yty one / m.
Proof.
  intros some one mean m. destruct (mean_is_mean rows i k some) as (first & second & third).
  unfold Rdiv. rewrite !(Rmult_comm _ (/ m)). repeat split; assumption.
Qed.

(** The convexity argument itself, for any statistic that is a sum over rows: [longest] bounds one
    row's contribution, [diameter] the distance of two; persons contribute means. *)
Theorem convexity (A I : Type) (indices : list I) (f : A -> I -> R) (allowed : A -> Prop)
  (longest diameter : R) (rel : relation) (D D' : list (list A)) :
  0 <= longest -> 0 <= diameter ->
  (forall a, allowed a -> size indices (f a) <= longest) ->
  (forall a a', allowed a -> allowed a' -> apart indices (f a) (f a') <= diameter) ->
  (forall rows, In rows D \/ In rows D' -> rows <> [] /\ forall a, In a rows -> allowed a) ->
    neighbours rel D D' ->
  apart indices (gathered_means f D) (gathered_means f D')
  <= match rel with ReplaceOne => diameter | AddRemove => longest end.
Proof. apply persons_apart. Qed.

(** * Where values lie

    Sums of K columns over complete rows, whose values are in [−1, 1]; under either relation, for
    rows and for persons, and attained. *)
Theorem sensitivity_of_places (rel : relation) (K : nat) (D D' : list values) :
  (forall r, In r D \/ In r D' -> in_range K r) -> neighbours rel D D' ->
  apart (all_places K) (gathered (places K) D) (gathered (places K) D')
    <= sqrt (places_squared reals (INR K)).
Proof. apply places_bound. Qed.

Theorem sensitivity_of_persons_places (rel : relation) (K : nat) (D D' : list (list values)) :
  (forall rows, In rows D \/ In rows D' -> rows <> [] /\ forall r, In r rows -> in_range K r) ->
    neighbours rel D D' ->
  apart (all_places K) (gathered_means (places K) D) (gathered_means (places K) D')
    <= sqrt (places_squared reals (INR K)).
Proof. apply places_of_persons. Qed.

Theorem places_are_exact (rel : relation) (K : nat) :
  exists D D', (forall r, In r D \/ In r D' -> in_range K r) /\ neighbours rel D D' /\
    apart (all_places K) (gathered (places K) D) (gathered (places K) D')
      = sqrt (places_squared reals (INR K)).
Proof. apply places_attained. Qed.

(** Noise for any such sum: [loud i] is the standard deviation on the i-th weighted number. *)
Theorem noise_covers_sums (I : Type) (indices : list I) (loud z z' : I -> R)
  (multiplier delta : R) :
  0 < multiplier -> 0 < delta -> apart indices z z' <= delta ->
    (forall i, multiplier * delta <= loud i) ->
  size indices (fun i => (z i - z' i) / loud i) <= / multiplier.
Proof. apply sums_covered. Qed.

(** * Clipped contributions

    If no contribution is longer than C: C under add-remove, 2C under replace-one, for rows and for
    persons, and attained. *)
Theorem sensitivity_of_clipped (A : Type) (rel : relation) (d : nat) (f : A -> vector) (C : R)
  (D D' : list A) :
  (forall a, norm d (f a) <= C) -> neighbours rel D D' ->
  norm d (fun i => gathered f D i - gathered f D' i) <= clipped_sensitivity reals rel C.
Proof. intros. now apply clipped_bound. Qed.

Theorem sensitivity_of_persons_clipped (A : Type) (rel : relation) (d : nat) (f : A -> vector)
  (C : R) (D D' : list (list A)) :
  0 <= C -> (forall a, norm d (f a) <= C) -> (forall rows, In rows D \/ In rows D' -> rows <> []) ->
    neighbours rel D D' ->
  norm d (fun i => gathered_means f D i - gathered_means f D' i) <= clipped_sensitivity reals rel C.
Proof. intros. now apply clipped_persons. Qed.

Theorem clipped_is_exact (rel : relation) (d : nat) (C : R) :
  (1 <= d)%nat -> 0 <= C ->
  exists D D' : list vector, (forall z, In z D \/ In z D' -> norm d z <= C) /\
    neighbours rel D D' /\
    norm d (fun i => gathered (fun z => z) D i - gathered (fun z => z) D' i)
      = clipped_sensitivity reals rel C.
Proof. apply clipped_attained. Qed.

(** The gradient of a row with its residual cut at C/‖x‖ is such a contribution, however long the
    row. *)
Theorem clipped_gradients_are_clipped (d : nat) (C : R) (theta : vector) (r : row) :
  0 <= C -> norm d (clipped_gradient d C theta r) <= C.
Proof. apply clipped_gradient_length. Qed.

(** * Averaging

    Coupled orders of neighbouring tables, dealt into groups of k. Every order of the larger table
    has a partner; that the partner of a uniform order is uniform is not proven here. *)
Theorem sensitivity_of_groups (rel : relation) (d k : nat) (X Y : R) (p : weights reals)
  (o o' : list row) (G G' : list (list row)) (l l' : R) :
  0 < X -> 0 < Y -> (2 <= k)%nat -> (forall r, In r o \/ In r o' -> legal d X Y r) ->
  coupled rel o o' -> dealt k o G -> dealt k o' G' ->
  let s := of_groups k G (INR (length o)) l in
  let s' := of_groups k G' (INR (length o')) l' in
  (e p <> 0 -> solved d X s /\ solved d X s') ->
  change d p s s' <= sqrt (sensitivity_squared reals rel (INR k) X Y p).
Proof. intros radius bound several lawful couple. now apply averaged_bound. Qed.

Theorem groups_are_exact (rel : relation) (d k : nat) (X Y : R) (p : weights reals) :
  0 < X -> 0 < Y -> (2 <= k)%nat -> (1 <= d)%nat -> e p = 0 ->
  exists o o' G G', (forall r, In r o \/ In r o' -> legal d X Y r) /\ coupled rel o o' /\
    dealt k o G /\ dealt k o' G' /\
    change d p (of_groups k G (INR (length o)) 0) (of_groups k G' (INR (length o')) 0)
    = sqrt (sensitivity_squared reals rel (INR k) X Y p).
Proof. intros. now apply averaged_attained. Qed.

Theorem every_order_has_a_partner (rel : relation) (D D' o : list row) :
  neighbours rel D D' -> (rel = AddRemove -> length D' < length D)%nat -> Permutation D o ->
  exists o', Permutation D' o' /\ coupled rel o o'.
Proof. apply coupling_of_orders. Qed.

Theorem every_order_is_dealt_once (k : nat) (o : list row) : (1 <= k)%nat -> exists! G, dealt k o G.
Proof.
  intros some. destruct (every_order_is_dealt k some o) as [G deal]. exists G.
  split; [exact deal |].
  intros G' other. now apply (dealt_unique k some o).
Qed.
